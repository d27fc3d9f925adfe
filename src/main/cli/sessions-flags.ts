/** The flags of `dsh-acp sessions` that are no settings of the server: names, forms, and which of its acts take them. */
import { configError, nearest } from '../config/config-error.ts';

export const sessionsActs = ['list', 'show', 'export', 'delete'] as const;
export type SessionsAct = (typeof sessionsActs)[number];

interface FlagRow {
  /** What stands for its value in `--help`; absent for a switch. */
  readonly value?: string;
  readonly acts: readonly SessionsAct[];
  readonly doc: string;
}

export const sessionsFlagTable = {
  cwd: { value: 'DIR', acts: ['list'], doc: 'Only sessions that worked in this directory.' },
  limit: { value: 'N', acts: ['list'], doc: 'At most so many, the newest first (1…10000). Default: 50.' },
  json: { acts: ['list', 'show'], doc: 'For programs: a list, or what is known of the session and its turns.' },
  text: { acts: ['show'], doc: 'As text, which is the default; colours on a terminal alone, and not with NO_COLOR.' },
  html: {
    acts: ['show'],
    doc: 'As one page that needs nothing else; a FILE may stand behind it. Without one it goes to stdout, or into session-ID.html where that is a terminal.',
  },
  trajectory: {
    acts: ['export'],
    doc: 'What the model saw and said, as one line of JSON in the form of the runner. Else the log as it stands.',
  },
  out: { value: 'FILE', acts: ['export'], doc: 'Where it goes. Default: stdout.' },
  yes: { acts: ['delete'], doc: 'Delete without a question; needed where nobody can be asked.' },
} as const satisfies Record<string, FlagRow>;

export type SessionsFlagName = keyof typeof sessionsFlagTable;
export const sessionsFlagNames = Object.keys(sessionsFlagTable) as SessionsFlagName[];

/** What was written behind `sessions`, unchecked. A switch has `''`. */
export type SessionsGiven = ReadonlyMap<SessionsFlagName, string>;

export function isSessionsSwitch(name: SessionsFlagName): boolean {
  return !('value' in sessionsFlagTable[name]);
}

export interface SessionsCall {
  readonly act: SessionsAct;
  readonly words: readonly string[];
  readonly given: SessionsGiven;
}

const where = 'command line';
const mostListed = 10_000;

/** @throws ServerError CONFIG_INVALID for another act, a flag that the act does not take, or too few or too many words */
export function readSessionsCall([word = 'list', ...words]: readonly string[], given: SessionsGiven): SessionsCall {
  const act = sessionsActs.find((one) => one === word);
  if (act === undefined) {
    const suggestion = nearest(word, sessionsActs);
    throw configError({ key: word, expected: `one of ${sessionsActs.join(', ')} after sessions`, where, suggestion });
  }
  for (const name of given.keys()) {
    const acts: readonly SessionsAct[] = sessionsFlagTable[name].acts;
    if (!acts.includes(act)) throw configError({ key: `--${name}`, expected: `it only with sessions ${acts.join(' and ')}`, where });
  }
  if (act !== 'list' && words.length === 0)
    throw configError({ key: `sessions ${act}`, expected: 'the id of a session, or its beginning', where });
  const most = { list: 0, show: given.has('html') ? 2 : 1, export: 1, delete: Number.POSITIVE_INFINITY }[act];
  const extra = words[most];
  if (extra !== undefined) throw configError({ key: extra, expected: `no more words after sessions ${act}`, where });
  const formats = ['json', 'text', 'html'].filter((name) => given.has(name as SessionsFlagName));
  if (formats.length > 1) throw configError({ key: `--${formats[1]}`, expected: `it without --${formats[0]}`, where });
  return { act, words, given };
}

/** @throws ServerError CONFIG_INVALID for what is no number of sessions */
export function readLimit(text: string | undefined): number {
  if (text === undefined) return 50;
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > mostListed)
    throw configError({ key: '--limit', expected: `a whole number from 1 to ${mostListed}`, came: text, where });
  return limit;
}
