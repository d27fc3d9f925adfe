/**
 * What becomes of a command before it is started: its sandbox, its network and its limits, or the reason why it must not run.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { CommandSpec, ControlNews, NetworkOff, SpawnFailure } from '../../../shared/broker-protocol.ts';
import { commandTmpName, quarantineName } from '../../../shared/log/session-paths.ts';
import { commandNetwork, type SandboxSettings, type SandboxState, turnedOff, uncontainedState } from '../../../shared/sandbox.ts';
import type { Environment } from '../environment.ts';
import { type Argv, NetworkCut } from '../network-cut.ts';
import type { LaunchSpec } from '../process-group.ts';
import { Bubblewrap, type FoundProgram, type Wrapped, type WrapWish } from './bubblewrap.ts';
import { CommandLimits } from './command-limits.ts';
import { ControlGuard } from './control-guard.ts';
import { PlaceMoved } from './directory-handle.ts';
import { GitSearch } from './git-search.ts';
import { Quarantine } from './quarantine.ts';
import { insideEnvironment, withheldInside } from './sandbox-environment.ts';

export interface ContainmentOptions {
  readonly settings: SandboxSettings;
  /** Absolute directories of this program's state and settings. */
  readonly own: readonly string[];
  readonly ambient: Environment;
  /** How networks are cut off without a sandbox; the system's own way by default. */
  readonly networkCut?: NetworkCut | undefined;
  readonly platform?: NodeJS.Platform;
}

export type Prepared = PreparedCommand | ({ readonly ok: false } & SpawnFailure);

export interface PreparedCommand {
  readonly ok: true;
  readonly argv: Argv;
  readonly env: Readonly<Record<string, string>>;
  /** Variables of the server's environment that it does not get. */
  readonly withheld?: readonly string[];
  readonly networkOff?: NetworkOff;
  readonly contained?: ContainedCommand;
}

/** {@link close} it once it has been started, or will not be. */
export interface ContainedCommand {
  /** Absent for programs that nobody looks behind. */
  readonly guard?: { news(): Promise<ControlNews> };
  /** To be inherited behind stdin, stdout and stderr. */
  readonly descriptors: readonly number[];
  readonly close: () => Promise<void>;
}

const notCut = 'ENOTSUP: the network of a command cannot be cut off on this system';

export class Containment {
  readonly #options: ContainmentOptions;
  readonly #networkCut: NetworkCut;
  readonly #bubblewrap: Bubblewrap;
  readonly #limits: CommandLimits;
  readonly #search = new GitSearch();
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
    const limits = await this.#limits.state();
    const found = use === 'off' ? ({ ok: false, why: turnedOff } as const) : await this.#bubblewrap.find();
    if (!found.ok) return { ...uncontainedState(network, found.why), ...limits };
    const weak = found.takesDescriptors ? {} : { weak: tooOld };
    return { kind: 'bubblewrap', network, version: found.version, ...limits, ...weak };
  }

  async canCutNetwork(): Promise<boolean> {
    return (await this.state()).kind === 'bubblewrap' || (await this.#networkCut.isPossible());
  }

  /** Never rejects: what the system refuses is a reason why the command must not run. */
  async prepare(spec: CommandSpec): Promise<Prepared> {
    try {
      return await this.#prepare(spec);
    } catch (error) {
      return { ok: false, spawnError: notMade(error) };
    }
  }

  async #prepare(spec: CommandSpec): Promise<Prepared> {
    const { settings } = this.#options;
    const { roots } = spec;
    if (roots === undefined) return await this.#prepareOwn(spec);
    const demanded = settings.use === 'required' || spec.sandbox === 'required';
    const found = settings.use === 'off' ? undefined : await this.#bubblewrap.find();
    if (found?.ok === true) return await this.#contain({ ...spec, roots }, found);
    if (demanded) return missing(found?.why ?? turnedOff);
    const limited = await this.#limits.wrapInside({ command: spec.command, args: spec.args });
    const networkOff = this.#networkOff('none', spec);
    const cut = networkOff === undefined ? limited : await this.#networkCut.wrap(limited);
    if (cut === undefined) return { ok: false, spawnError: notCut };
    return { ok: true, argv: await this.#limits.wrap(spec.owner, cut), env: {}, ...(networkOff === undefined ? {} : { networkOff }) };
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
    const wish = {
      roots: directories,
      writable,
      tmp: undefined,
      spillDir: undefined,
      cwd,
      network: network === 'off' ? 'off' : 'on',
    } as const;
    const wrapped = await this.#wrap({ command, args }, found, wish);
    return 'spawnError' in wrapped ? { ok: false, ...wrapped } : { ...this.#inside(wrapped.wrapped), ok: true, argv: wrapped.wrapped.argv };
  }

  async #prepareOwn({ command, args, network }: CommandSpec): Promise<Prepared> {
    const argv = network === 'none' ? await this.#networkCut.wrap({ command, args }) : { command, args };
    return argv === undefined ? { ok: false, spawnError: notCut } : { ok: true, argv, env: {} };
  }

  /** Why a command has no network; `undefined` where it has one. */
  #networkOff(kind: SandboxState['kind'], { network: bound }: CommandSpec): NetworkOff | undefined {
    const { network } = this.#options.settings;
    if (commandNetwork({ kind, network }, { bound }) === 'on') return undefined;
    return network === 'off' ? 'settings' : bound === 'none' ? 'rule' : 'unasked';
  }

  async #contain(spec: CommandSpec & { readonly roots: readonly string[] }, found: FoundProgram): Promise<Prepared> {
    const { writable } = this.#options.settings;
    const { spillDir, cwd } = spec;
    // Nothing is written there, so there is nothing to hold or to look for.
    const roots = spec.roots.filter((root) => root !== '/');
    const networkOff = this.#networkOff('bubblewrap', spec);
    const [tmp, inner] = await Promise.all([this.#tmpOf(spec), this.#limits.wrapInside({ command: spec.command, args: spec.args })]);
    const network = networkOff === undefined ? 'on' : 'off';
    const tried = await this.#wrap(inner, found, { roots, writable, tmp, spillDir, cwd, network });
    if ('spawnError' in tried) return { ok: false, ...tried };
    const { wrapped, dotGits } = tried;
    try {
      const { opened, gitElsewhere } = wrapped.plan;
      const quarantine = new Quarantine(spillDir === undefined ? undefined : join(spillDir, quarantineName));
      const parts = { roots, gitElsewhere, opened, search: this.#search, quarantine, unasked: spec.unasked === true };
      const [argv, guard] = await Promise.all([this.#limits.wrap(spec.owner, wrapped.argv), ControlGuard.begin(parts, dotGits)]);
      return { ...this.#inside(wrapped, guard), ok: true, argv, ...(networkOff === undefined ? {} : { networkOff }) };
    } catch (error) {
      await wrapped.close();
      throw error;
    }
  }

  #inside({ descriptors, close }: Wrapped, guard?: ControlGuard): Pick<PreparedCommand, 'env' | 'withheld' | 'contained'> {
    const { ambient, settings } = this.#options;
    return {
      env: insideEnvironment(ambient, settings.writable),
      withheld: withheldInside(ambient, settings.writable),
      contained: { descriptors, close, ...(guard === undefined ? {} : { guard }) },
    };
  }

  /** Again where the workspace changed while it was looked at: an editor that saves a file does that, too. */
  async #wrap(
    argv: Argv,
    found: FoundProgram,
    wish: Omit<WrapWish, 'dotGits'>,
  ): Promise<{ readonly wrapped: Wrapped; readonly dotGits: readonly string[] } | SpawnFailure> {
    for (let left = attempts; ; left -= 1) {
      const dotGits = [
        ...new Set((await Promise.all(wish.roots.filter((root) => root !== '/').map((root) => this.#search.find(root)))).flat()),
      ];
      try {
        return { wrapped: await this.#bubblewrap.wrap(argv, found, { ...wish, dotGits }), dotGits };
      } catch (error) {
        if (error instanceof PlaceMoved && left > 1) continue;
        if (error instanceof PlaceMoved) return { spawnError: `ESTALE: ${error.message}` };
        return { spawnError: notMade(error) };
      }
    }
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

const attempts = 3;
const tooOld =
  'this bubblewrap takes no open directories (version 0.10, and security updates of older ones, do): a command in the background could swap a directory while another one starts';

function notMade(error: unknown): string {
  return `${(error as NodeJS.ErrnoException).code ?? 'UNKNOWN'}: what commands are kept in could not be made`;
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
