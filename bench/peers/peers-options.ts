/** Which agents are compared, at how many sessions: `--peers a,b` and `--sessions 1,10`. */
import { allNames } from './contestants.ts';

export interface PeersOptions {
  readonly names: readonly string[];
  readonly sessions: readonly number[];
}

export const peersUsage = `  peers compares ours with agents of others (npm run bench:peers-install installs them):
  --peers A,B      only these of ${allNames.join(', ')}
  --sessions N,M   at these numbers of sessions (1,10,50,200)
`;

const usualSessions: readonly number[] = [1, 10, 50, 200];

/** @throws Error with a sentence for the user */
export function readPeersOptions(given: { readonly peers?: string | undefined; readonly sessions?: string | undefined }): PeersOptions {
  const names = given.peers?.split(',') ?? allNames;
  const unknown = names.filter((name) => !allNames.includes(name));
  if (unknown.length > 0) throw new Error(`--peers knows no ${unknown.join(', ')}; there are ${allNames.join(', ')}`);
  const sessions = given.sessions?.split(',').map(Number) ?? usualSessions;
  if (sessions.some((count) => !Number.isInteger(count) || count < 1 || count > 1000)) {
    throw new Error('--sessions takes whole numbers from 1 to 1000, with commas between them');
  }
  return { names, sessions };
}
