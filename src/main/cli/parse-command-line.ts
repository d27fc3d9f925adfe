/** Reads the command line into a command and its options. Checks names here; values are checked with all other settings. */
import { parseArgs } from 'node:util';
import { configError, nearest } from '../config/config-error.ts';
import { flagOf } from '../config/key-spelling.ts';
import { type KeyName, keyNames } from '../config/schema.ts';
import { isSwitch, type RunFlagName, runFlagNames, type RunWords } from './run-flags.ts';
import { isSessionsSwitch, type SessionsFlagName, sessionsFlagNames, type SessionsGiven } from './sessions-flags.ts';

const commands = ['serve', 'run', 'login', 'logout', 'demo', 'doctor', 'config', 'grants', 'sessions'] as const;
export type Command = (typeof commands)[number];

const formats = ['text', 'json', 'markdown'] as const;
export type PrintFormat = (typeof formats)[number];

export interface CommandLine {
  readonly command: Command;
  /** Whether the command was written, and not taken by default. */
  readonly named: boolean;
  readonly help: boolean;
  readonly version: boolean;
  /** What `--config` named. */
  readonly file: string | undefined;
  /** Unchecked text, by key; of a repeated flag the last. */
  readonly flags: ReadonlyMap<KeyName, string>;
  readonly format: PrintFormat;
  /** What only `run` takes. */
  readonly run: RunWords;
  /** What only `sessions` takes. */
  readonly sessions: SessionsGiven;
  /** Behind the command. */
  readonly words: readonly string[];
  /** `login` takes the key from stdin and asks nothing. */
  readonly keyStdin: boolean;
}

const switches = { help: 'h', version: 'v', login: undefined, 'key-stdin': undefined } as const;
const where = 'command line';

function flagTable(): Map<string, KeyName> {
  const table = new Map<string, KeyName>();
  for (const name of keyNames) {
    const flag = flagOf(name);
    if (flag !== undefined) table.set(flag.slice(2), name);
  }
  return table;
}

function parse(argv: readonly string[], known: ReadonlyMap<string, KeyName>) {
  const options: Record<string, { type: 'string' | 'boolean'; short?: string }> = {
    config: { type: 'string' },
    format: { type: 'string' },
  };
  for (const [name, short] of Object.entries(switches)) options[name] = { type: 'boolean', ...(short === undefined ? {} : { short }) };
  for (const name of runFlagNames) options[name] = { type: isSwitch(name) ? 'boolean' : 'string' };
  for (const name of sessionsFlagNames) options[name] = { type: isSessionsSwitch(name) ? 'boolean' : 'string' };
  for (const flag of known.keys()) options[flag] = { type: 'string' };
  return parseArgs({
    args: argv.map((word, index) => spelledOut(word, argv[index + 1])),
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens;
}

/** `--supervise` alone is what a person types. */
function spelledOut(word: string, next: string | undefined): string {
  return word === '--supervise' && next !== 'on' && next !== 'off' ? '--supervise=on' : word;
}

function readCommand(words: readonly string[]): Command | undefined {
  const [word, extra] = words;
  if (word === undefined) return undefined;
  const command = commands.find((candidate) => candidate === word);
  if (command === undefined)
    throw configError({ key: word, expected: `one of the commands ${commands.join(', ')}`, where, suggestion: nearest(word, commands) });
  // What is done with grants and sessions is said behind them, and checked there.
  if (command === 'grants' || command === 'sessions') return command;
  // `run` has a subject: a jobs file, or a prompt.
  const tooMuch = command === 'run' ? words[2] : extra;
  if (tooMuch === undefined) return command;
  const expected = command === 'run' ? 'one jobs file or one prompt (in quotes) after run' : 'no more words after the command';
  throw configError({ key: tooMuch, expected, where });
}

/** Clients put `--login` behind whatever they start the server with, or in its place. */
function loginInstead(command: Command | undefined, seen: ReadonlySet<string>): Command | undefined {
  const isLogin = command === 'login' || seen.has('login');
  if (isLogin && command !== undefined && command !== 'serve' && command !== 'login')
    throw configError({ key: '--login', expected: `no command ${command} with it`, where });
  if (seen.has('key-stdin') && !isLogin) throw configError({ key: '--key-stdin', expected: 'it only with the command login', where });
  return isLogin ? 'login' : command;
}

function runFlagNamed(name: string): RunFlagName | undefined {
  return runFlagNames.find((one) => one === name);
}

function sessionsFlagNamed(name: string): SessionsFlagName | undefined {
  return sessionsFlagNames.find((one) => one === name);
}

/** Some names are flags of both commands. */
function refuseForeignFlags(run: ReadonlyMap<RunFlagName, unknown>, sessions: SessionsGiven, command: Command): void {
  if (command === 'run')
    return refuse(
      [...sessions.keys()].filter((name) => runFlagNamed(name) === undefined),
      'sessions',
    );
  refuse(command === 'sessions' ? [...run.keys()].filter((name) => sessionsFlagNamed(name) === undefined) : [...run.keys()], 'run');
  if (command !== 'sessions') refuse([...sessions.keys()], 'sessions');
}

function refuse([first]: readonly string[], owner: Command): void {
  if (first !== undefined) throw configError({ key: `--${first}`, expected: `it only with the command ${owner}`, where });
}

function readFormat(value: string | undefined, command: Command): PrintFormat {
  if (value === undefined) return 'text';
  const format = formats.find((candidate) => candidate === value);
  if (command !== 'config') throw configError({ key: '--format', expected: 'it only with the command config', where });
  if (format === undefined) throw configError({ key: '--format', expected: `one of ${formats.join(', ')}`, came: value, where });
  return format;
}

/**
 * @param argv without the program's own two words
 * @throws ServerError CONFIG_INVALID for an unknown command or flag, a flag without its value, or too many words
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const known = flagTable();
  const texts = new Map<string, string>();
  const seen = new Set<string>();
  const words: string[] = [];
  const runFlags = new Map<RunFlagName, string[]>();
  const sessionsFlags = new Map<SessionsFlagName, string>();
  for (const token of parse(argv, known)) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    if (name in switches) {
      if (value !== undefined) throw configError({ key: rawName, expected: 'no value', where });
      seen.add(name);
      continue;
    }
    const runFlag = runFlagNamed(name);
    const sessionsFlag = sessionsFlagNamed(name);
    if (sessionsFlag !== undefined) sessionsFlags.set(sessionsFlag, value ?? '');
    if (sessionsFlag !== undefined && runFlag === undefined && isSessionsSwitch(sessionsFlag)) {
      if (value !== undefined) throw configError({ key: rawName, expected: 'no value', where });
      continue;
    }
    if (runFlag !== undefined && isSwitch(runFlag)) {
      if (value !== undefined && runFlag !== 'shuffle') throw configError({ key: rawName, expected: 'no value', where });
      runFlags.set(runFlag, [value ?? '']);
      continue;
    }
    if (runFlag === undefined && sessionsFlag === undefined && !known.has(name) && name !== 'config' && name !== 'format') {
      const all = [...known.keys(), ...runFlagNames, ...sessionsFlagNames, 'config', 'format', ...Object.keys(switches)].map(
        (flag) => `--${flag}`,
      );
      throw configError({ key: rawName, expected: 'a flag that --help lists', where, suggestion: nearest(rawName, all) });
    }
    // `--model --profile x`: the parser would take the next flag for the value. An agent's arguments do look like flags.
    if (value === undefined || (!token.inlineValue && value.startsWith('--') && runFlag !== 'agent-arg'))
      throw configError({ key: rawName, expected: 'a value after it', where });
    if (runFlag === undefined && sessionsFlag === undefined) texts.set(name, value);
    else if (runFlag !== undefined) runFlags.set(runFlag, [...(runFlags.get(runFlag) ?? []), value]);
  }
  const command = loginInstead(readCommand(words), seen);
  const flags = new Map<KeyName, string>();
  for (const [flag, name] of known) {
    const text = texts.get(flag);
    if (text !== undefined) flags.set(name, text);
  }
  const file = texts.get('config');
  refuseForeignFlags(runFlags, sessionsFlags, command ?? 'serve');
  if (command === 'demo' && texts.size > 0)
    throw configError({ key: `--${[...texts.keys()][0]}`, expected: 'no options with demo', where });
  return {
    command: command ?? 'serve',
    named: command !== undefined,
    help: seen.has('help'),
    version: seen.has('version'),
    file,
    flags,
    format: readFormat(texts.get('format'), command ?? 'serve'),
    run: { subject: words[1], given: runFlags },
    sessions: sessionsFlags,
    words: words.slice(1),
    keyStdin: seen.has('key-stdin'),
  };
}
