/**
 * Commands in a sandbox made by bubblewrap: a file system of their own making, processes that end with their first one, and no
 * rights beyond the user's. Whether that works here is found out by a real try, once, when it is first asked for.
 *
 * The command needs no terminal session of its own: it is started without a terminal, and its `/dev` shows none of ours.
 */
import { execFile } from 'node:child_process';
import type { Environment } from '../environment.ts';
import type { Argv } from '../network-cut.ts';
import { findSystemProgram } from './find-program.ts';
import { type HiddenPlaces, hiddenPlaces } from './hidden-places.ts';
import { mountArguments, type MountWish } from './mounts.ts';

const trialTimeoutMs = 5_000;
const longestReason = 200;
/** The user's own namespace first: without it nothing of the rest is possible, and with it no right reaches outside. */
const namespaces = ['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--die-with-parent'];
const noRights = ['--cap-drop', 'ALL'];

export type Found =
  | { readonly ok: true; readonly program: string; readonly version: string }
  | { readonly ok: false; readonly why: string };

export interface BubblewrapOptions {
  readonly platform: NodeJS.Platform;
  readonly ambient: Environment;
  /** Absolute directories of this program's state and settings. */
  readonly own: readonly string[];
}

export class Bubblewrap {
  readonly #options: BubblewrapOptions;
  #found: Promise<Found> | undefined;

  constructor(options: BubblewrapOptions) {
    this.#options = options;
  }

  /** Never rejects. What was found stays; what was not is looked for again at the next call. */
  async find(): Promise<Found> {
    this.#found ??= this.#try();
    const found = await this.#found;
    if (!found.ok) this.#found = undefined;
    return found;
  }

  /** The command inside; only after {@link find} was ok. The same pid leads the group; its end ends all that is inside. */
  async wrap({ command, args }: Argv, cwd: string, program: string, wish: MountWish & { readonly network: 'on' | 'off' }): Promise<Argv> {
    const places = await this.#places();
    const mounts = await mountArguments(wish, places);
    const network = wish.network === 'off' ? ['--unshare-net'] : [];
    return { command: program, args: [...namespaces, ...network, ...noRights, ...mounts, '--chdir', cwd, '--', command, ...args] };
  }

  async #places(): Promise<HiddenPlaces> {
    return await hiddenPlaces(this.#options.ambient, this.#options.own);
  }

  async #try(): Promise<Found> {
    const { platform } = this.#options;
    if (platform !== 'linux') return { ok: false, why: `bubblewrap works on Linux only, and this is ${platform}` };
    const program = findSystemProgram('bwrap');
    if (program === undefined) return { ok: false, why: 'bubblewrap (bwrap) is not installed' };
    const version = await output(program, ['--version']);
    // With a network of its own, since a system may allow everything but that.
    const wish = { roots: [], writable: [], tmp: undefined, spillDir: undefined, network: 'off' } as const;
    const trial = await this.wrap({ command: 'readlink', args: ['/proc/self'] }, '/', program, wish);
    const seen = await output(program, trial.args);
    if (!version.ok || !seen.ok) {
      const reason = (version.ok ? seen : version).text;
      return { ok: false, why: `bubblewrap is installed but does not work here: ${reason === '' ? 'it gave no reason' : reason}` };
    }
    // Only a small number is a proof of processes of its own.
    if (!/^\d$/.test(seen.text)) return { ok: false, why: 'bubblewrap is installed but gives commands no processes of their own' };
    return { ok: true, program, version: version.text.replace(/^bubblewrap /, '') };
  }
}

function output(command: string, args: readonly string[]): Promise<{ readonly ok: boolean; readonly text: string }> {
  return new Promise((resolve) => {
    const options = { timeout: trialTimeoutMs, killSignal: 'SIGKILL', env: { PATH: '/usr/bin:/bin' }, cwd: '/' } as const;
    execFile(command, args, options, (error, stdout, stderr) => {
      const text = (error === null ? stdout : stderr).trim().split('\n')[0] ?? '';
      resolve({ ok: error === null, text: text.slice(0, longestReason) });
    });
  });
}
