/**
 * How much memory and how many processes the commands of one session may take together.
 *
 * Held by a control group of the session's own where this server may make one. Elsewhere by limits of the shell, which are weaker: memory
 * is then that of each process, and the number of processes that of the user, or of the sandbox where there is one.
 */
import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SandboxState } from '../../../shared/sandbox.ts';
import type { Argv } from '../network-cut.ts';

export interface LimitSettings {
  /** MB; `0` sets none. */
  readonly memoryMb: number;
  /** `0` sets none. */
  readonly maxProcesses: number;
}

interface Hierarchy {
  /** Where groups are made. */
  readonly directory: string;
  readonly files: readonly {
    readonly name: string;
    readonly value: string /** Absent on systems without swap accounting. */;
    readonly optional?: true;
  }[];
}

interface Hierarchies {
  /** All that the limits need, or none at all. */
  readonly hierarchies: readonly Hierarchy[];
  /** Why there are none, to stand behind "as". */
  readonly why: string;
}

/** Every control group of a session, and the way into them. */
interface Groups {
  readonly directories: readonly string[];
}

const cgroupRoot = '/sys/fs/cgroup';
/** Joins each group, then becomes the command: same pid. A group that cannot be joined lets nothing run. */
const joinGroups = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';

export class CommandLimits {
  readonly #settings: LimitSettings;
  readonly #groups = new Map<string, Promise<Groups>>();
  #hierarchies: Promise<Hierarchies> | undefined;
  #swept: Promise<void> | undefined;

  constructor(settings: LimitSettings) {
    this.#settings = settings;
  }

  get isSet(): boolean {
    return this.#settings.memoryMb > 0 || this.#settings.maxProcesses > 0;
  }

  /** What holds the limits here, and why it is not control groups; nothing where none are set. Never rejects. */
  async state(): Promise<Pick<SandboxState, 'limits' | 'limitsWhy'>> {
    if (!this.isSet) return {};
    const { hierarchies, why } = await this.#find();
    return hierarchies.length > 0 ? { limits: 'cgroup' } : { limits: 'ulimit', limitsWhy: why };
  }

  /** The command under the limits of its owner. The inner one is limited by the shell when `inside` a sandbox and no group can be had. */
  async wrap(owner: string, argv: Argv): Promise<Argv> {
    if (!this.isSet || (await this.#find()).hierarchies.length === 0) return argv;
    let groups = this.#groups.get(owner);
    if (groups === undefined) {
      groups = this.#make();
      this.#groups.set(owner, groups);
    }
    const { directories } = await groups;
    return { command: '/bin/sh', args: ['-c', joinGroups, 'sh', ...directories, '--', argv.command, ...argv.args] };
  }

  /** The command behind limits of the shell, where there are no groups; to be put inside a sandbox. */
  async wrapInside(argv: Argv): Promise<Argv> {
    if (!this.isSet || (await this.#find()).hierarchies.length > 0) return argv;
    const { memoryMb, maxProcesses } = this.#settings;
    // Not every shell knows -u: one that does not runs nothing.
    const limits = [
      ...(memoryMb > 0 ? [`ulimit -v ${memoryMb * 1024}`] : []),
      ...(maxProcesses > 0 ? [`{ ulimit -u ${maxProcesses} || ulimit -p ${maxProcesses}; } 2>/dev/null`] : []),
    ].join(' && ');
    return { command: '/bin/sh', args: ['-c', `${limits} || exit 125; exec "$@"`, 'sh', argv.command, ...argv.args] };
  }

  /** Once all processes of the owner have ended. */
  async release(owner: string): Promise<void> {
    const groups = await this.#groups.get(owner)?.catch(() => undefined);
    this.#groups.delete(owner);
    // A member that is stuck in the kernel keeps its group; it is empty and small.
    for (const directory of groups?.directories ?? []) await rmdir(directory).catch(() => undefined);
  }

  async #make(): Promise<Groups> {
    this.#swept ??= sweepLeft((await this.#find()).hierarchies);
    await this.#swept;
    const name = ownName();
    const directories: string[] = [];
    for (const { directory, files } of (await this.#find()).hierarchies) {
      const group = join(directory, name);
      await mkdir(group);
      directories.push(group);
      for (const file of files) {
        const written = writeFile(join(group, file.name), file.value);
        await (file.optional === true ? written.catch(() => undefined) : written);
      }
    }
    return { directories };
  }

  async #find(): Promise<Hierarchies> {
    this.#hierarchies ??= findHierarchies(this.#settings);
    return await this.#hierarchies;
  }
}

async function findHierarchies({ memoryMb, maxProcesses }: LimitSettings): Promise<Hierarchies> {
  if (process.platform !== 'linux') return none('control groups are Linux only');
  try {
    const lines = (await readFile('/proc/self/cgroup', 'utf8'))
      .trim()
      .split('\n')
      .map((line) => line.split(':'));
    const wanted = [...(memoryMb > 0 ? (['memory'] as const) : []), ...(maxProcesses > 0 ? (['pids'] as const) : [])];
    const unified = lines.find(([id]) => id === '0')?.[2];
    const values = { memory: String(memoryMb * 1024 * 1024), pids: String(maxProcesses) };
    const second =
      unified === undefined ? none('there is no control group of version 2') : await unifiedParent(join(cgroupRoot, unified), wanted);
    if (typeof second === 'string') {
      const files = wanted.map((name) => ({ name: `${name}.max`, value: values[name] }));
      const swap = memoryMb > 0 ? [{ name: 'memory.swap.max', value: '0', optional: true as const }] : [];
      return found([{ directory: second, files: [...files, ...swap] }]);
    }
    const first = wanted.map((name) => {
      const own = lines.find(([, controllers]) => controllers?.split(',').includes(name))?.[2];
      const file = name === 'memory' ? 'memory.limit_in_bytes' : 'pids.max';
      return own === undefined ? undefined : { directory: join(cgroupRoot, name, own), files: [{ name: file, value: values[name] }] };
    });
    const hierarchies = first.filter((one) => one !== undefined);
    if (hierarchies.length < wanted.length) return second;
    for (const { directory } of hierarchies) await tryToMake(directory);
    return found(hierarchies);
  } catch (error) {
    // No control groups, or none that are ours to divide.
    return none(`no control group can be made here (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
}

function none(why: string): Hierarchies {
  return { hierarchies: [], why };
}

function found(hierarchies: readonly Hierarchy[]): Hierarchies {
  return { hierarchies, why: '' };
}

/** A group with processes cannot be divided further, so a new one must stand beside that of this server. */
async function unifiedParent(own: string, wanted: readonly string[]): Promise<string | Hierarchies> {
  const parent = dirname(own);
  try {
    const given = (await readFile(join(parent, 'cgroup.subtree_control'), 'utf8')).trim().split(' ');
    const missing = wanted.filter((name) => !given.includes(name));
    if (missing.length > 0) return none(`the controllers ${missing.join(' and ')} are not delegated to ${parent}`);
    await access(join(parent, 'cgroup.procs'), constants.W_OK);
    await tryToMake(parent);
    return parent;
  } catch (error) {
    return none(`no control group can be made in ${parent} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
}

async function tryToMake(directory: string): Promise<void> {
  const trial = join(directory, ownName());
  await mkdir(trial);
  await rmdir(trial);
}

function ownName(): string {
  return `dsh-acp-${process.pid}-${randomUUID()}`;
}

/** Groups of servers that were killed: a group with a process in it cannot be removed, so nothing that lives loses its own. Never rejects. */
export async function sweepLeft(hierarchies: readonly Pick<Hierarchy, 'directory'>[]): Promise<void> {
  for (const { directory } of hierarchies) {
    const names = await readdir(directory).catch(() => []);
    for (const name of names) {
      const pid = Number(/^dsh-acp-(\d+)-/.exec(name)?.[1]);
      if (Number.isInteger(pid) && !isAlive(pid)) await rmdir(join(directory, name)).catch(() => undefined);
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
