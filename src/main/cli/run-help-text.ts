/** The text of `dsh-acp run --help`. The list of flags is made from their table. */
import { type RunFlagName, runFlagNames, runFlagTable } from './run-flags.ts';
import { wrapText } from './wrap-text.ts';

function flagLines(name: RunFlagName): string {
  const row = runFlagTable[name];
  const value = 'value' in row ? ` ${row.value}` : name === 'shuffle' ? '[=SEED]' : '';
  return `  --${name}${value}\n${wrapText(row.doc, 6, 100)}`;
}

/** The whole text, with a newline at its end. */
export function runHelpText(version: string): string {
  return `dsh-acp ${version} run: many jobs for one agent, a result line each.

Usage: dsh-acp run JOBS.jsonl --out RESULTS.jsonl [options]   a jobs file, or - for stdin
       dsh-acp run "one prompt" [options]                     answers on stdout

A line of a jobs file is a JSON object: id, prompt (text, or a list for several turns), and a place to work: cwd, or repo and base for
a git worktree of its own. It may have setup, check, budget, policy, mode, env, labels and more: see docs/runner.md.
Every option of the server (dsh-acp --help) may be given too and goes to it: --model, --base-url, --policy-file, …
The server runs with --profile automation and --isolation shared unless told otherwise, and keeps its logs beside the results.

${runFlagNames.map(flagLines).join('\n')}

Ctrl-C once: nothing new starts, what runs is finished. Twice: that is cancelled too. Start the same command again to go on.

Exit codes: 0 all passed or completed · 1 some did not · 2 something is wrong with what was asked · 3 stopped early
`;
}
