/** The text of `dsh-acp sessions --help`. The list of flags is made from their table. */
import { type SessionsFlagName, sessionsFlagNames, sessionsFlagTable } from './sessions-flags.ts';
import { wrapText } from './wrap-text.ts';

function flagLines(name: SessionsFlagName): string {
  const row = sessionsFlagTable[name];
  const value = 'value' in row ? ` ${row.value}` : name === 'html' ? ' [FILE]' : '';
  return `  --${name}${value}  (${row.acts.join(', ')})\n${wrapText(row.doc, 6, 100)}`;
}

/** The whole text, with a newline at its end. */
export function sessionsHelpText(version: string): string {
  return `dsh-acp ${version} sessions: what is stored of sessions, also while servers run.

Usage: dsh-acp sessions [list]       the newest sessions
       dsh-acp sessions show ID      one session: what was said, done, asked and spent
       dsh-acp sessions export ID    its log, or what its model saw
       dsh-acp sessions delete ID... sessions with all that belongs to them; one that a server works on is left

An ID may be shortened to a beginning that no other session has. All but delete only read. --state-dir names another place.

${sessionsFlagNames.map(flagLines).join('\n')}

Exit codes: 0 done · 1 no such session, or one could not be deleted · 2 something is wrong with what was asked
`;
}
