/** The flags of `dsh-acp run` that are no settings of the server: names, forms and values. */
import type { PermissionMode } from '../../shared/events.ts';
import { configError, nearest } from '../config/config-error.ts';

interface FlagRow {
  /** What stands for its value in `--help`; absent for a switch. */
  readonly value?: string;
  readonly doc: string;
}

export const runFlagTable = {
  out: { value: 'FILE', doc: 'The results, a line an attempt; needed with a jobs file. What is in it is not run again.' },
  concurrency: { value: 'N', doc: 'Jobs at once (1…1024). Default: 16, which keeps a model server busy while checks use the cores.' },
  agent: { value: 'COMMAND', doc: 'Another ACP agent in place of this server: a program and its arguments, parted by blanks.' },
  'agent-arg': { value: 'WORD', doc: 'An argument of the agent, as it stands; may be repeated. COMMAND is then the program alone.' },
  cwd: { value: 'DIR', doc: 'Where the one prompt of the command line works. Default: the current directory.' },
  check: { value: 'COMMAND', doc: 'For the one prompt of the command line: exit 0 of sh -c COMMAND means passed.' },
  mode: { value: 'MODE', doc: 'Permission mode of jobs that do not name one: ask, accept-edits, read-only or full-access.' },
  ordered: { doc: 'Result lines stand in the order of the jobs file at any moment.' },
  'skip-invalid': { doc: 'Leave wrong lines of the jobs file out, instead of starting nothing.' },
  repeat: { value: 'K', doc: 'Run each job K times (1…10000), with seeds one apart. Default: 1.' },
  shuffle: { doc: 'Start jobs in an order drawn by --shuffle=SEED, the same for the same seed. Default SEED: 1.' },
  retries: { value: 'N', doc: 'Further tries after failures that may pass (0…100), unless tools have run. Default: 2.' },
  'retry-delay': { value: 'DURATION', doc: 'Before the second try; doubles from then on. Default: 1s.' },
  'retry-errors': { doc: 'Run attempts again whose result in FILE has the status error.' },
  force: { doc: 'Keep results of jobs that have changed since, or that were made with another model or setting.' },
  'max-cost': { value: 'USD', doc: 'Start nothing more once all results in FILE together have cost this.' },
  'max-time': {
    value: 'DURATION',
    doc: 'Stop the run after this long (90s, 30m, 8h). What runs is cancelled, and run again by the next run.',
  },
  'fail-fast': { doc: 'Start nothing more after the first job that neither passed nor completed.' },
  'keep-worktrees': { doc: 'Leave the worktrees of the jobs where they are.' },
  'worktree-dir': {
    value: 'DIR',
    doc: 'Where worktrees are made. Default: $XDG_CACHE_HOME/dsh-acp/worktrees, else ~/.cache/dsh-acp/worktrees.',
  },
  live: { doc: 'Show the run on the terminal. Default when stdout is one.' },
  plain: { doc: 'Show the run as plain lines. Default when stdout is no terminal.' },
  json: { doc: 'Write every event of the run to stdout as a line of JSON.' },
  report: { value: 'FILE', doc: 'A page about the run. Default: FILE of --out with .report.html at its end.' },
  'no-report': { doc: 'Make no such page, and none of its attempts.' },
  junit: { value: 'FILE', doc: 'The results as JUnit XML.' },
  trajectories: { value: 'FILE', doc: 'The conversations of all attempts as JSON Lines.' },
} as const satisfies Record<string, FlagRow>;

export type RunFlagName = keyof typeof runFlagTable;

export const runFlagNames = Object.keys(runFlagTable) as RunFlagName[];

export function isSwitch(name: RunFlagName): boolean {
  return !('value' in runFlagTable[name]);
}

/** What was written behind `run`, unchecked. */
export interface RunWords {
  /** A jobs file, `-`, or a prompt. */
  readonly subject: string | undefined;
  /** By flag, all its values in order; a switch has the text behind its `=`, or `''`. */
  readonly given: ReadonlyMap<RunFlagName, readonly string[]>;
}

export interface RunFlags {
  readonly out: string | undefined;
  readonly concurrency: number;
  readonly agent: readonly string[] | undefined;
  readonly cwd: string | undefined;
  readonly check: string | undefined;
  readonly mode: PermissionMode | undefined;
  readonly ordered: boolean;
  readonly skipInvalid: boolean;
  readonly repeat: number;
  readonly shuffleSeed: number | undefined;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly retryErrors: boolean;
  readonly force: boolean;
  readonly maxCostUsd: number | undefined;
  readonly maxTimeMs: number | undefined;
  readonly failFast: boolean;
  readonly keepWorktrees: boolean;
  readonly worktreeDir: string | undefined;
  readonly view: 'live' | 'plain' | 'json' | undefined;
  readonly report: string | undefined;
  readonly noReport: boolean;
  readonly junit: string | undefined;
  readonly trajectories: string | undefined;
}

const where = 'command line';
const modes: readonly PermissionMode[] = ['ask', 'accept-edits', 'read-only', 'full-access', 'plan'];
const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @throws ServerError CONFIG_INVALID for the first value that is wrong */
export function readRunFlags({ given }: RunWords): RunFlags {
  const last = (name: RunFlagName): string | undefined => given.get(name)?.at(-1);
  const has = (name: RunFlagName): boolean => given.has(name);
  return {
    out: last('out'),
    concurrency: whole(last('concurrency'), 'concurrency', 1, 1_024) ?? 16,
    agent: agentArgv(last('agent'), given.get('agent-arg')),
    cwd: last('cwd'),
    check: last('check'),
    mode: mode(last('mode')),
    ordered: has('ordered'),
    skipInvalid: has('skip-invalid'),
    repeat: whole(last('repeat'), 'repeat', 1, 10_000) ?? 1,
    shuffleSeed: has('shuffle') ? (whole(last('shuffle') || undefined, 'shuffle', 0, 4_294_967_295) ?? 1) : undefined,
    retries: whole(last('retries'), 'retries', 0, 100) ?? 2,
    retryDelayMs: duration(last('retry-delay'), 'retry-delay') ?? 1_000,
    retryErrors: has('retry-errors'),
    force: has('force'),
    maxCostUsd: dollars(last('max-cost')),
    maxTimeMs: duration(last('max-time'), 'max-time'),
    failFast: has('fail-fast'),
    keepWorktrees: has('keep-worktrees'),
    worktreeDir: last('worktree-dir'),
    view: view(has),
    report: last('report'),
    noReport: noReport(has),
    junit: last('junit'),
    trajectories: last('trajectories'),
  };
}

function whole(text: string | undefined, name: RunFlagName, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw configError({ key: `--${name}`, expected: `a whole number from ${min} to ${max}`, came: text, where });
}

function duration(text: string | undefined, name: RunFlagName): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text);
  const ms = Math.round(Number(match?.[1]) * (units[match?.[2] ?? ''] ?? Number.NaN));
  if (ms >= 1) return ms;
  throw configError({ key: `--${name}`, expected: 'a duration such as 500ms, 90s, 30m, 8h or 2d', came: text, where });
}

function dollars(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  throw configError({ key: '--max-cost', expected: 'a number of US dollars above 0', came: text, where });
}

function mode(text: string | undefined): PermissionMode | undefined {
  if (text === undefined) return undefined;
  const found = modes.find((one) => one === text);
  if (found !== undefined) return found;
  throw configError({ key: '--mode', expected: `one of ${modes.join(', ')}`, came: text, where, suggestion: nearest(text, modes) });
}

function agentArgv(command: string | undefined, args: readonly string[] | undefined): readonly string[] | undefined {
  if (command === undefined) {
    if (args !== undefined) throw configError({ key: '--agent-arg', expected: 'it only with --agent', where });
    return undefined;
  }
  const argv = args === undefined ? command.split(/\s+/).filter((word) => word !== '') : [command, ...args];
  if (argv[0] !== undefined && argv[0] !== '') return argv;
  throw configError({ key: '--agent', expected: 'a command', came: command, where });
}

function noReport(has: (name: RunFlagName) => boolean): boolean {
  if (has('no-report') && has('report')) throw configError({ key: '--no-report', expected: 'it without --report', where });
  return has('no-report');
}

function view(has: (name: RunFlagName) => boolean): RunFlags['view'] {
  const [first, second] = (['live', 'plain', 'json'] as const).filter((name) => has(name));
  if (second !== undefined) throw configError({ key: `--${second}`, expected: `it without --${first}`, where });
  return first;
}
