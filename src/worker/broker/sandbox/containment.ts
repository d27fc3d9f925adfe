/**
 * What becomes of a command before it is started: its sandbox, its network and its limits, or the reason why it must not run.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { CommandSpec, SpawnFailure } from '../../../shared/broker-protocol.ts';
import { commandTmpName } from '../../../shared/log/session-paths.ts';
import { isInsideAny } from '../../../shared/path-inside.ts';
import type { SandboxSettings, SandboxState } from '../../../shared/sandbox.ts';
import type { Environment } from '../environment.ts';
import { type Argv, NetworkCut } from '../network-cut.ts';
import type { LaunchSpec } from '../process-group.ts';
import { Bubblewrap } from './bubblewrap.ts';
import { CommandLimits } from './command-limits.ts';
import { ControlFileWatch } from './control-file-watch.ts';

export interface ContainmentOptions {
  readonly settings: SandboxSettings;
  /** Absolute directories of this program's state and settings. */
  readonly own: readonly string[];
  readonly ambient: Environment;
  /** How networks are cut off without a sandbox; the system's own way by default. */
  readonly networkCut?: NetworkCut | undefined;
  readonly platform?: NodeJS.Platform;
}

export type Prepared =
  | {
      readonly ok: true;
      readonly argv: Argv;
      readonly env: Readonly<Record<string, string>>;
      readonly holdsSandbox?: true;
      readonly contained?: ContainedCommand;
    }
  | ({ readonly ok: false } & SpawnFailure);

export interface ContainedCommand {
  readonly watch: ControlFileWatch;
}

/** For a server that says nothing. */
export const noSandbox: SandboxSettings = { use: 'off', network: 'on', writable: [], memoryMb: 0, maxProcesses: 0 };

const notCut = 'ENOTSUP: the network of a command cannot be cut off on this system';

export class Containment {
  readonly #options: ContainmentOptions;
  readonly #networkCut: NetworkCut;
  readonly #bubblewrap: Bubblewrap;
  readonly #limits: CommandLimits;
  /** By owner: what stands in the place of `/tmp`, so that one command finds what an earlier one left there. */
  readonly #tmp = new Map<string, Promise<string | undefined>>();

  constructor(options: ContainmentOptions) {
    this.#options = options;
    const { platform = process.platform, ambient, own, settings } = options;
    this.#networkCut = options.networkCut ?? new NetworkCut({ platform });
    this.#bubblewrap = new Bubblewrap({ platform, ambient, own });
    this.#limits = new CommandLimits(settings);
  }

  /** What holds for commands of this server; tries the sandbox if that has not been done. Never rejects. */
  async state(): Promise<SandboxState> {
    const { use, network } = this.#options.settings;
    const limits = this.#limits.isSet ? { limits: await this.#limits.kind() } : {};
    if (use === 'off') return { kind: 'none', network, ...limits, why: 'it is turned off' };
    const found = await this.#bubblewrap.find();
    return found.ok
      ? { kind: 'bubblewrap', network, version: found.version, ...limits }
      : { kind: 'none', network, ...limits, why: found.why };
  }

  async canCutNetwork(): Promise<boolean> {
    return (await this.state()).kind === 'bubblewrap' || (await this.#networkCut.isPossible());
  }

  async prepare(spec: CommandSpec): Promise<Prepared> {
    const { settings } = this.#options;
    const { roots } = spec;
    if (roots === undefined) return await this.#prepareOwn(spec);
    const network = spec.network === 'none' || settings.network === 'off' ? 'off' : 'on';
    const demanded = settings.use === 'required' || spec.sandbox === 'required';
    const argv = { command: spec.command, args: spec.args };
    const found = settings.use === 'off' ? undefined : await this.#bubblewrap.find();
    if (found?.ok === true) return await this.#contain({ ...spec, roots }, found.program, network);
    if (demanded) {
      return missing(found?.why ?? 'it is turned off');
    }
    const limited = await this.#limits.wrapInside(argv);
    const cut = network === 'off' ? await this.#networkCut.wrap(limited) : limited;
    if (cut === undefined) return { ok: false, spawnError: notCut };
    return { ok: true, argv: await this.#limits.wrap(spec.owner, cut), env: {} };
  }

  /** Once no process of the owner is left. */
  async release(owner: string): Promise<void> {
    const tmp = this.#tmp.get(owner);
    this.#tmp.delete(owner);
    const directory = await tmp;
    // Files that a command has locked away from its own user stay, until the session is deleted.
    if (directory !== undefined) await rm(directory, { recursive: true, force: true }).catch(() => undefined);
    await this.#limits.release(owner);
  }

  /** An MCP server is the client's own program, with rights of its own; but where a sandbox is demanded it gets none without. */
  async prepareServer({ command, args, cwd }: LaunchSpec, directories: readonly string[]): Promise<Prepared> {
    const { use, network, writable } = this.#options.settings;
    if (use !== 'required') return { ok: true, argv: { command, args }, env: {} };
    const found = await this.#bubblewrap.find();
    if (!found.ok) return missing(found.why);
    const wish = { roots: directories, writable, tmp: undefined, spillDir: undefined, network };
    const argv = await this.#bubblewrap.wrap({ command, args }, cwd, found.program, wish);
    return { ok: true, argv, env: insideEnvironment(this.#options.ambient, writable), holdsSandbox: true };
  }

  async #prepareOwn({ command, args, network }: CommandSpec): Promise<Prepared> {
    const argv = network === 'none' ? await this.#networkCut.wrap({ command, args }) : { command, args };
    return argv === undefined ? { ok: false, spawnError: notCut } : { ok: true, argv, env: {} };
  }

  async #contain(spec: CommandSpec & { readonly roots: readonly string[] }, program: string, network: 'on' | 'off'): Promise<Prepared> {
    const { writable } = this.#options.settings;
    const { roots } = spec;
    const tmp = await this.#tmpOf(spec);
    const inner = await this.#limits.wrapInside({ command: spec.command, args: spec.args });
    const wish = { roots, writable, tmp, spillDir: spec.spillDir, network };
    const [argv, watch] = await Promise.all([this.#bubblewrap.wrap(inner, spec.cwd, program, wish), ControlFileWatch.begin(roots)]);
    return {
      ok: true,
      argv: await this.#limits.wrap(spec.owner, argv),
      env: insideEnvironment(this.#options.ambient, writable),
      holdsSandbox: true,
      contained: { watch },
    };
  }

  #tmpOf({ owner, spillDir }: CommandSpec): Promise<string | undefined> {
    let tmp = this.#tmp.get(owner);
    if (tmp === undefined) {
      const made = spillDir === undefined ? mkdtemp(join(tmpdir(), 'dsh-acp-tmp-')) : emptyDirectory(join(spillDir, commandTmpName));
      // A disk that takes no more: then each command has one in memory.
      tmp = made.catch(() => undefined);
      this.#tmp.set(owner, tmp);
    }
    return tmp;
  }
}

/** A server that was killed may have left something there. */
async function emptyDirectory(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  // No more than the session's own directory: where its parent is gone nothing is made anew.
  await mkdir(dirname(path), { mode: 0o700 }).catch(() => undefined);
  await mkdir(path, { mode: 0o700 });
  return path;
}

function missing(why: string): Prepared {
  return { ok: false, spawnCode: 'SANDBOX_UNAVAILABLE', spawnError: `commands must run in a sandbox, and there is none: ${why}` };
}

/** Of programs that fail where they cannot write their cache, and where it lies in the home directory. */
const caches = {
  npm_config_cache: '.npm',
  GOCACHE: '.cache/go-build',
  UV_CACHE_DIR: '.cache/uv',
  YARN_CACHE_FOLDER: '.cache/yarn',
} as const;

/** Caches in the home directory can be read only, unless the settings say otherwise: these go to `/tmp`. */
function insideEnvironment({ HOME: home, ...ambient }: Environment, writable: readonly string[]): Record<string, string> {
  const moved = Object.entries(caches).filter(
    ([name, place]) => ambient[name] === undefined && (home === undefined || !isInsideAny(writable, join(home, place))),
  );
  return { TMPDIR: '/tmp', ...Object.fromEntries(moved.map(([name, place]) => [name, `/tmp/${place}`])) };
}
