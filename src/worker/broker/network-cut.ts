/**
 * A command without a network: it starts in a network namespace of its own, where nothing but an idle loopback is.
 *
 * The namespace hangs in a user namespace of its own as well, so that the command has no right to go back to the server's
 * network or into a process that is there. Linux only. Sockets that are files (a container engine's, for example) are no
 * network and stay in reach.
 */
import { execFile } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { findSystemProgram } from './sandbox/find-program.ts';

export interface Argv {
  readonly command: string;
  readonly args: readonly string[];
}

/** The user stays who they are; older versions of the program can only make them look like root. */
const optionSets: readonly (readonly string[])[] = [
  ['--user', '--map-current-user', '--net', '--'],
  ['--user', '--map-root-user', '--net', '--'],
];
const probeTimeoutMs = 5_000;
const namespaceOfNetwork = '/proc/self/ns/net';

export interface NetworkCutOptions {
  readonly platform: NodeJS.Platform;
  /** Where `unshare` is looked for; those of the system by default. */
  readonly directories?: readonly string[];
}

export class NetworkCut {
  readonly #options: NetworkCutOptions;
  #found: Promise<Argv | undefined> | undefined;

  constructor(options: NetworkCutOptions) {
    this.#options = options;
  }

  /** The command behind what cuts its network off; `undefined` where that cannot be done. It replaces itself: same pid. */
  async wrap({ command, args }: Argv): Promise<Argv | undefined> {
    const found = await this.#find();
    return found === undefined ? undefined : { command: found.command, args: [...found.args, command, ...args] };
  }

  /** Whether {@link wrap} works here. Tried for real at the first call. */
  async isPossible(): Promise<boolean> {
    return (await this.#find()) !== undefined;
  }

  async #find(): Promise<Argv | undefined> {
    this.#found ??= this.#probe();
    const found = await this.#found;
    // A system that had no room for the try may have it next time.
    if (found === undefined) this.#found = undefined;
    return found;
  }

  async #probe(): Promise<Argv | undefined> {
    if (this.#options.platform !== 'linux') return undefined;
    const command = findSystemProgram('unshare', this.#options.directories);
    if (command === undefined) return undefined;
    for (const args of optionSets) {
      if (await isCutOff({ command, args })) return { command, args };
    }
    return undefined;
  }
}

/** Asks from inside which network it is: only another one than ours is a proof. */
function isCutOff({ command, args }: Argv): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = ['readlink', namespaceOfNetwork];
    const options = { timeout: probeTimeoutMs, killSignal: 'SIGKILL', env: { PATH: '/usr/bin:/bin' }, cwd: '/' } as const;
    execFile(command, [...args, ...probe], options, (error, stdout) => {
      const inside = stdout.trim();
      resolve(error === null && /^net:\[\d+\]$/.test(inside) && inside !== ownNetwork());
    });
  });
}

function ownNetwork(): string | undefined {
  try {
    return readlinkSync(namespaceOfNetwork);
  } catch {
    // No /proc: then the probe had no answer either.
    return undefined;
  }
}
