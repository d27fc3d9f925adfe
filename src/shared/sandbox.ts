/**
 * What commands are kept in: the settings, what they come to on this machine, and the words for it.
 *
 * A command is allowed as exact argv, or asked about, or contained; what it seems to do decides nothing. The sandbox itself is the broker's.
 */

/** `required` refuses commands where there is no sandbox; `auto` takes one where there is one. */
export type SandboxUse = 'required' | 'auto' | 'off';

export interface SandboxSettings {
  readonly use: SandboxUse;
  /** `off` holds for every command, with a sandbox or without: one whose network cannot be cut off is not started. */
  readonly network: 'on' | 'off';
  /** Absolute paths that commands may write beside the workspace. Nothing in them is hidden or held. */
  readonly writable: readonly string[];
  /** Of all commands of a session together, in MB; `0` sets no limit. */
  readonly memoryMb: number;
  /** Of all commands of a session together; `0` sets no limit. */
  readonly maxProcesses: number;
}

/** As this server found it by a real try. */
export interface SandboxState {
  readonly kind: 'bubblewrap' | 'none';
  readonly network: 'on' | 'off';
  /** Of the program. */
  readonly version?: string;
  /** What holds the limits of memory and processes; absent where none are set. */
  readonly limits?: 'cgroup' | 'ulimit';
  /** Why there is none; absent where there is one. */
  readonly why?: string;
}

/** What commands of a session are to be kept in, and what they are as far as that is known when it is put on a thread. */
export interface SandboxWish {
  readonly use: Exclude<SandboxUse, 'off'>;
  readonly network: 'on' | 'off';
  /** Absent until the first command of this server, or question about one, has shown it. */
  readonly kind?: SandboxState['kind'];
}

/** A sentence for whoever is asked about a command. `network`: of this command. */
export function sandboxWords({ kind, network: ofAll }: SandboxState, network: 'none' | undefined): string {
  const isCut = network === 'none' || ofAll === 'off';
  if (kind === 'none') return isCut ? 'Runs without a sandbox, and without a network.' : 'Runs without a sandbox.';
  return `Runs contained: writes only in the workspace${isCut ? ', no network' : ''}.`;
}
