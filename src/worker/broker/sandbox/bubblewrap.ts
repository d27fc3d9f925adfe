/**
 * Commands in a sandbox made by bubblewrap: a file system of their own making, processes that end with their first one, and no
 * rights beyond the user's. Whether that works here is found out by a real try, once, when it is first asked for.
 *
 * The command needs no terminal session of its own: it is started without a terminal, and its `/dev` shows none of ours.
 */
import { execFile } from 'node:child_process';
import type { Argv } from '../network-cut.ts';
import { findSystemProgram } from './find-program.ts';
import { hiddenPlaces, type OfServer } from './hidden-places.ts';
import { type MountPlan, type MountWish, planMounts } from './mounts.ts';
import { type OpenMounts, openMounts } from './open-mounts.ts';

const trialTimeoutMs = 5_000;
const longestReason = 200;
/** The user's own namespace first: without it nothing of the rest is possible, and with it no right reaches outside. */
const namespaces = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--die-with-parent',
  '--as-pid-1',
];
const noRights = ['--cap-drop', 'ALL'];
/**
 * The first process inside. Bubblewrap would end before one of its own has, and leave it to whoever adopts it; this one it waits for, so that the end
 * of the group can be seen at once. It says nothing of a signal that ends the command, and becomes nothing: its end ends all.
 */
const firstProcess = ['/bin/sh', '-c', 'exec 3>&2 2>/dev/null; (exec "$@" 2>&3 3>&-); exit $?', 'sh'];
/** Devices and processes are its own. */
const everythingToRead = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'];

export type Found = FoundProgram | { readonly ok: false; readonly why: string };

export interface FoundProgram {
  readonly ok: true;
  readonly program: string;
  readonly version: string;
  /** It takes open directories, and looks whether it has mounted what they are. */
  readonly takesDescriptors: boolean;
}

export interface BubblewrapOptions extends OfServer {
  readonly platform: NodeJS.Platform;
}

export interface WrapWish extends MountWish {
  readonly cwd: string;
  readonly network: 'on' | 'off';
}

export interface Wrapped extends OpenMounts {
  readonly argv: Argv;
  readonly plan: MountPlan;
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

  /**
   * The command inside. The same pid leads the group; its end ends all that is inside.
   *
   * @throws PlaceMoved where the workspace is changed this very moment; the system's error where no more files can be opened
   */
  async wrap({ command, args }: Argv, { program, takesDescriptors }: FoundProgram, wish: WrapWish): Promise<Wrapped> {
    const places = await hiddenPlaces(this.#options, [...wish.roots, ...wish.writable]);
    const plan = await planMounts(wish, places);
    const opened = await openMounts(plan.mounts, takesDescriptors);
    const network = wish.network === 'off' ? ['--unshare-net'] : [];
    const mounts = [...everythingToRead, ...opened.args];
    const argv = {
      command: program,
      args: [...namespaces, ...network, ...noRights, ...mounts, '--chdir', wish.cwd, '--', ...firstProcess, command, ...args],
    };
    return { ...opened, argv, plan };
  }

  async #try(): Promise<Found> {
    const { platform } = this.#options;
    if (platform !== 'linux') return { ok: false, why: `bubblewrap works on Linux only, and this is ${platform}` };
    const program = findSystemProgram('bwrap');
    if (program === undefined) return { ok: false, why: 'bubblewrap (bwrap) is not installed' };
    // With a network of its own, since a system may allow everything but that.
    const wish = { roots: [], writable: [], tmp: undefined, spillDir: undefined, dotGits: [], cwd: '/', network: 'off' } as const;
    const trial = { ok: true, program, version: '', takesDescriptors: false } as const;
    const { argv } = await this.wrap({ command: 'readlink', args: ['/proc/self'] }, trial, wish);
    const [version, help, seen] = await Promise.all([
      output(program, ['--version']),
      output(program, ['--help']),
      output(program, argv.args),
    ]);
    if (!version.ok || !seen.ok) {
      const reason = firstLine((version.ok ? seen : version).text);
      return { ok: false, why: `bubblewrap is installed but does not work here: ${reason === '' ? 'it gave no reason' : reason}` };
    }
    // Only a small number is a proof of processes of its own.
    if (!/^\d$/.test(seen.text)) return { ok: false, why: 'bubblewrap is installed but gives commands no processes of their own' };
    return {
      ok: true,
      program,
      version: firstLine(version.text).replace(/^bubblewrap /, ''),
      takesDescriptors: help.text.includes('--ro-bind-fd '),
    };
  }
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, longestReason);
}

function output(command: string, args: readonly string[]): Promise<{ readonly ok: boolean; readonly text: string }> {
  return new Promise((resolve) => {
    const options = { timeout: trialTimeoutMs, killSignal: 'SIGKILL', env: { PATH: '/usr/bin:/bin' }, cwd: '/' } as const;
    execFile(command, args, options, (error, stdout, stderr) =>
      resolve({ ok: error === null, text: (error === null ? stdout : stderr).trim() }),
    );
  });
}
