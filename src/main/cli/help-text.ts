/** The text of `--help`. The list of flags is made from the table of settings. */
import { describeType } from '../config/check-value.ts';
import { flagOf } from '../config/key-spelling.ts';
import type { Section } from '../config/key-spec.ts';
import { type KeyName, keyNames, sectionNames, specOf } from '../config/schema.ts';
import { wrapText } from './wrap-text.ts';

const titles: Record<Section, string> = {
  '': 'General',
  provider: 'Model server',
  threads: 'Threads',
  limits: 'Limits',
  budget: 'Budget of one turn',
  permissions: 'Permissions',
  mcp: 'MCP servers',
  telemetry: 'Telemetry',
};

function valueName(name: KeyName): string {
  const { type } = specOf(name);
  if (type.kind === 'choice') return type.values.join('|');
  return { integer: 'N', decimal: 'N', text: 'TEXT', url: 'URL', path: 'DIR', word: 'NAME', names: 'NAMES' }[type.kind];
}

function describe(name: KeyName): string {
  const spec = specOf(name);
  const fallback = spec.default ?? spec.defaultText ?? 'none';
  const range =
    spec.type.kind === 'integer' ? ` (${describeType(spec.type).replace('a whole number from ', '').replace(' to ', '…')})` : '';
  return `${spec.doc}${range} Default: ${String(fallback).replaceAll('`', '')}.`.replaceAll('`', '');
}

function flagLines(section: Section): string {
  const names = keyNames.filter((name) => specOf(name).section === section && flagOf(name) !== undefined);
  return names.map((name) => `  ${flagOf(name)} ${valueName(name)}\n${wrapText(describe(name), 6, 100)}`).join('\n');
}

/** The whole text, with a newline at its end. */
export function helpText(version: string): string {
  const sections: readonly Section[] = ['', ...sectionNames];
  return `dsh-acp ${version}: a coding-agent server that speaks the Agent Client Protocol (ACP) on stdin and stdout.

Usage: dsh-acp [serve] [options]   run the server until stdin ends (this is what an editor starts)
       dsh-acp run JOBS --out FILE run a file of jobs, or one prompt, and write results (dsh-acp run --help)
       dsh-acp login [options]     ask for the key of the model server in a terminal, and store it
                                   (--key-stdin takes it from stdin; --login anywhere does the same)
       dsh-acp logout [options]    forget the stored key
       dsh-acp demo                run a server and 8 sessions with the built-in model; needs no key
       dsh-acp doctor [options]    check this machine and find model servers on it
       dsh-acp grants [list [DIR] | remove ID | clear DIR]
                                   what you allowed or rejected for good, and the way to take it back
       dsh-acp sessions [list | show ID | export ID | delete ID...]
                                   stored sessions, also while servers run (dsh-acp sessions --help)
       dsh-acp config [options]    print every setting, its value, and where the value came from
                                   (--format text|json|markdown)

  -h, --help       this text
  -v, --version    the version
  --config FILE    a TOML file; else $DSH_ACP_CONFIG, else $XDG_CONFIG_HOME/dsh-acp/config.toml

Every option has a key in the file and a variable DSH_ACP_… (--max-threads, DSH_ACP_MAX_THREADS, [threads] max_threads).
A flag wins over a variable, a variable over the file. Anything unknown is an error at the start.

Isolation: "dedicated" gives each running session a thread of its own and lets newcomers share beyond --max-threads.
"strict" never shares, so --max-threads is then a hard limit of running turns: 200 prompts on 64 threads take 4 waves.
For hundreds of sessions use --profile automation (or --isolation shared): all sessions run on as many threads as there
are cores, with far less memory and CPU for each.

${sections.map((section) => `${titles[section]}:\n${flagLines(section)}`).join('\n\n')}

Environment:
  DEEPSEEK_API_KEY     turns DeepSeek on when no model is configured; goes before a stored key
  DEEPSEEK_BASE_URL    another address for it
  DSH_ACP_API_KEY      a key for [provider] base_url; there is no flag, as other users can see a command line

Exit codes: 0 ended in order · 1 failed · 2 a setting is wrong; those of run are in its own help
`;
}
