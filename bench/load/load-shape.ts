/**
 * One load in numbers, as `npm run bench -- load` takes it: how many connections, sessions, turns and tokens, how quick, in which
 * loop, with which tools, on which history, as which client and on which threads.
 */

const mixes = ['none', 'reads', 'commands', 'edits'] as const;
const isolations = ['dedicated', 'strict', 'shared', 'parked'] as const;

export type Mix = (typeof mixes)[number];
export type LoadIsolation = (typeof isolations)[number];

export interface LoadShape {
  /** Servers, each with a stdio connection of its own. */
  readonly connections: number;
  /** Of each connection. */
  readonly sessions: number;
  /** Of each session, in each repeat. */
  readonly turns: number;
  /** Deltas of text of each turn. */
  readonly tokens: number;
  /** Milliseconds between two of them; `0` is as fast as it comes. */
  readonly delayMs: number;
  /** `closed`: the next prompt of a session is sent when the last one was answered. `open`: at times that no answer changes. */
  readonly loop: 'open' | 'closed';
  /** Prompts a second over all sessions; `0` in a closed loop. */
  readonly rate: number;
  /** What each turn has done before it answers. */
  readonly mix: Mix;
  /** Turns that each session has behind it, stored before the server starts. */
  readonly history: number;
  /** Bytes that each tool call puts out or, without tools, that the answer of each turn has at least. */
  readonly outputBytes: number;
  readonly profile: 'editor' | 'automation';
  /** `parked`: shared threads, and no session is on one when its turn begins. */
  readonly isolation: LoadIsolation;
  /** Session threads at most; as the server has it when left out. */
  readonly threads?: number;
  readonly repeats: number;
  /** Of the times at which an open loop prompts. */
  readonly seed: number;
  /** Runs the floor agent at the same load, in turns with ours. */
  readonly floor: boolean;
}

export const defaultShape: LoadShape = {
  connections: 1,
  sessions: 50,
  turns: 2,
  tokens: 100,
  delayMs: 5,
  loop: 'closed',
  rate: 0,
  mix: 'none',
  history: 0,
  outputBytes: 0,
  profile: 'editor',
  isolation: 'shared',
  repeats: 5,
  seed: 1,
  floor: false,
};

/** For `parseArgs`. */
export const loadOptions = {
  connections: { type: 'string' },
  sessions: { type: 'string' },
  turns: { type: 'string' },
  tokens: { type: 'string' },
  delay: { type: 'string' },
  loop: { type: 'string' },
  rate: { type: 'string' },
  mix: { type: 'string' },
  history: { type: 'string' },
  output: { type: 'string' },
  profile: { type: 'string' },
  isolation: { type: 'string' },
  threads: { type: 'string' },
  repeats: { type: 'string' },
  seed: { type: 'string' },
  floor: { type: 'boolean' },
} as const;

export const loadUsage = `  load with any of these runs that one load:
  --connections K  servers, each on a stdio of its own (1)      --sessions S   of each connection (50)
  --turns T        of each session in each repeat (2)           --tokens N     deltas of a turn (100)
  --delay MS       between two deltas, 0 = no pause (5)         --loop L       closed or open (closed)
  --rate R         prompts a second of all, with --loop open    --mix M        none, reads, commands or edits (none)
  --history H      turns behind each session (0)                --output BYTES of a tool call, else of an answer (0)
  --profile P      editor or automation (editor)                --isolation I  dedicated, strict, shared or parked (shared)
  --threads N      session threads at most (the server's own)   --repeats R    measured rounds (5)
  --seed N         of an open loop's times (1)                  --floor        the floor agent beside it
`;

type Given = Readonly<Partial<Record<keyof typeof loadOptions, string | boolean>>>;

/** The load that is asked for; `undefined` when none of the options was given. @throws Error that names the option */
export function loadShapeOf(given: Given): LoadShape | undefined {
  const names = Object.keys(loadOptions) as (keyof typeof loadOptions)[];
  if (names.every((name) => given[name] === undefined)) return undefined;
  const shape: LoadShape = {
    connections: whole(given, 'connections', [1, 64]) ?? defaultShape.connections,
    sessions: whole(given, 'sessions', [1, 100_000]) ?? defaultShape.sessions,
    turns: whole(given, 'turns', [1, 100_000]) ?? defaultShape.turns,
    tokens: whole(given, 'tokens', [1, 1_000_000]) ?? defaultShape.tokens,
    delayMs: number(given, 'delay', [0, 60_000]) ?? defaultShape.delayMs,
    loop: oneOf(given, 'loop', ['closed', 'open']) ?? defaultShape.loop,
    rate: number(given, 'rate', [0.001, 1_000_000]) ?? defaultShape.rate,
    mix: oneOf(given, 'mix', mixes) ?? defaultShape.mix,
    history: whole(given, 'history', [0, 100_000]) ?? defaultShape.history,
    outputBytes: whole(given, 'output', [0, 1_000_000_000]) ?? defaultShape.outputBytes,
    profile: oneOf(given, 'profile', ['editor', 'automation']) ?? defaultShape.profile,
    isolation: oneOf(given, 'isolation', isolations) ?? defaultShape.isolation,
    repeats: whole(given, 'repeats', [1, 1000]) ?? defaultShape.repeats,
    seed: whole(given, 'seed', [0, Number.MAX_SAFE_INTEGER]) ?? defaultShape.seed,
    floor: given.floor === true,
    ...optionalThreads(given),
  };
  refuseContradictions(shape);
  return shape;
}

function optionalThreads(given: Given): { readonly threads?: number } {
  const threads = whole(given, 'threads', [1, 1024]);
  return threads === undefined ? {} : { threads };
}

function refuseContradictions({ loop, rate, floor, mix, history, profile }: LoadShape): void {
  if (loop === 'open' && rate === 0) throw new Error('--loop open needs --rate, the prompts a second');
  if (loop === 'closed' && rate > 0) throw new Error('--rate is for --loop open: in a closed loop the answers set the pace');
  if (floor && (mix !== 'none' || history > 0 || profile !== 'editor'))
    throw new Error('--floor has no tools, no history and no profile: it goes with --mix none, --history 0 and --profile editor');
}

function number(given: Given, name: keyof Given, [least, most]: readonly [number, number]): number | undefined {
  const text = given[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text !== '' && value >= least && value <= most) return value;
  throw new Error(`--${name} takes a number from ${least} to ${most}, not "${text}"`);
}

function whole(given: Given, name: keyof Given, range: readonly [number, number]): number | undefined {
  const value = number(given, name, range);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new Error(`--${name} takes a whole number, not "${given[name]}"`);
}

function oneOf<T extends string>(given: Given, name: keyof Given, values: readonly T[]): T | undefined {
  const text = given[name];
  if (text === undefined) return undefined;
  const value = values.find((one) => one === text);
  if (value !== undefined) return value;
  throw new Error(`--${name} is one of ${values.join(', ')}, not "${text}"`);
}

/** `1 × 50 × 2 × 100 at 5 ms, closed, shared`, and what is not as it is by default. */
export function shapeText(shape: LoadShape): string {
  const { connections, sessions, turns, tokens, delayMs, loop, rate, mix, history, outputBytes, profile, isolation, threads } = shape;
  return [
    `${connections} × ${sessions} sessions × ${turns} turns × ${tokens} tokens`,
    delayMs === 0 ? 'as fast as it comes' : `${delayMs} ms`,
    loop === 'open' ? `open, ${rate} prompts/s` : 'closed',
    threads === undefined ? isolation : `${isolation} on ${threads} threads`,
    ...(mix === 'none' ? [] : [mix]),
    ...(outputBytes === 0 ? [] : [`output ${outputBytes} B`]),
    ...(history === 0 ? [] : [`history of ${history} turns`]),
    ...(profile === 'editor' ? [] : [profile]),
  ].join(', ');
}
