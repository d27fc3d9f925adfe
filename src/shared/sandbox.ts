/**
 * What commands are kept in: the settings, what they come to on this machine, and the words for it.
 *
 * A command is allowed as exact argv, or asked about, or contained; what it seems to do decides nothing. The sandbox itself is the broker's.
 */

/** `required` refuses commands where there is no sandbox; `auto` takes one where there is one. */
export type SandboxUse = 'required' | 'auto' | 'off';

/**
 * `ask`: contained commands have no network but where one asks for it and is allowed that; `on`, `off`: all commands. `off` holds without a
 * sandbox, too: a command whose network cannot be cut off is not started.
 */
export type NetworkUse = 'ask' | 'on' | 'off';

export interface SandboxSettings {
  readonly use: SandboxUse;
  readonly network: NetworkUse;
  /** Absolute paths that commands may write beside the workspace. Nothing in them is hidden or held. */
  readonly writable: readonly string[];
  /** Of all commands of a session together, in MB; `0` sets no limit. */
  readonly memoryMb: number;
  /** Of all commands of a session together; `0` sets no limit. */
  readonly maxProcesses: number;
}

/** For a server that says nothing. */
export const noSandbox: SandboxSettings = { use: 'off', network: 'on', writable: [], memoryMb: 0, maxProcesses: 0 };

/** What is in effect for commands, as this server found it by a real try. */
export interface SandboxState {
  readonly kind: 'bubblewrap' | 'none';
  /** Never `ask` where there is no sandbox. */
  readonly network: NetworkUse;
  /** Of the program. */
  readonly version?: string;
  /** What holds the limits of memory and processes; absent where none are set. */
  readonly limits?: 'cgroup' | 'ulimit';
  /** Why the limits are not held by control groups. */
  readonly limitsWhy?: string;
  /** Why there is none; absent where there is one. */
  readonly why?: string;
  /** What an old program cannot do; absent where nothing is amiss. */
  readonly weak?: string;
}

/** What is in effect where there is none. */
export function uncontainedState(network: NetworkUse, why: string): SandboxState {
  return { kind: 'none', network: network === 'off' ? 'off' : 'on', why };
}

export const turnedOff = 'it is turned off';

/** The same, with what the settings ask for. `kind` is absent only where nobody could tell in time. */
export type SandboxReport = Omit<SandboxState, 'kind'> & { readonly use: SandboxUse; readonly kind?: SandboxState['kind'] };

export interface NetworkWish {
  /** What a rule of the policy, or the mode, says of this command. */
  readonly bound?: 'none' | 'any' | undefined;
  /** The call asks for the network, and whoever decides on the call decides on that. */
  readonly asks?: boolean | undefined;
}

/** Whether one command reaches the network. The only place that decides on it. */
export function commandNetwork({ kind, network }: Pick<SandboxState, 'kind' | 'network'>, { bound, asks }: NetworkWish): 'on' | 'off' {
  if (bound === 'none' || network === 'off') return 'off';
  if (kind === 'none' || network === 'on' || bound === 'any') return 'on';
  return asks === true ? 'on' : 'off';
}

const containedWords = 'Runs contained: writes only in the workspace';

/** A sentence for whoever is asked about a command. `network`: of this command. */
export function sandboxWords({ kind }: Pick<SandboxState, 'kind'>, network: 'on' | 'off'): string {
  const reach = network === 'on' ? 'with network' : 'no network';
  return kind === 'none' ? `Runs without a sandbox, ${reach}.` : `${containedWords}, ${reach}.`;
}

const networkWords = {
  ask: 'no network but where a command asks for it and is allowed that',
  on: 'with network',
  off: 'no network',
} as const satisfies Record<NetworkUse, string>;

/** The same of all commands, in one line for whoever looks after the server. */
export function sandboxSummary({ kind, network, version, why, limits, limitsWhy, weak }: SandboxState): string {
  const what =
    kind === 'none' ? `none (${why ?? 'it does not work here'}): Runs without a sandbox` : `bubblewrap ${version ?? ''}: ${containedWords}`;
  return [`${what}, ${networkWords[network]}`, limitWords(limits, limitsWhy), ...(weak === undefined ? [] : [weak])].join('; ');
}

function limitWords(limits: SandboxState['limits'], why: string | undefined): string {
  if (limits === undefined) return 'no limits of memory and processes are set';
  return limits === 'cgroup'
    ? 'limits held by control groups'
    : `limits held by the shell alone, as ${why ?? 'there are no control groups'}`;
}
