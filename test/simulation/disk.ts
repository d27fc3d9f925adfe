/**
 * A disk in memory, for what lies below `/sim`: files with a part that is durable and a part that is not, and faults when they are
 * asked for. Its functions are those of `node:fs` that the simulated program calls; a call without an effect is one of a dead thread.
 */
import { constants } from 'node:fs';
import type { Random } from './random.ts';
import type { World } from './world.ts';

export interface Inode {
  readonly ino: number;
  data: Buffer;
  size: number;
  /** Bytes that would survive a power cut; the name would once `isNamed`. */
  durable: number;
  isNamed: boolean;
  nlink: number;
  mtimeNs: bigint;
  mode: number;
  readonly isDirectory: boolean;
}

interface Descriptor {
  readonly inode: Inode;
  readonly path: string;
}

export interface DiskFaults {
  /** Writes fail with this code while it is set. */
  writes: 'ENOSPC' | 'EIO' | undefined;
  /** So many of the next syncs fail. */
  syncs: number;
}

const firstDescriptor = 1_000_000;

export class Disk {
  readonly files = new Map<string, Inode>();
  readonly faults: DiskFaults = { writes: undefined, syncs: 0 };
  /** Files that lost their power before anything of them was durable: they promise nothing. */
  readonly unkept = new Set<string>();
  readonly descriptors = new Map<number, Descriptor>();
  /** Grows with each start of a server: whoever wrote a lock before is another process. */
  processStart = 1;
  readonly #world: World;
  #next = firstDescriptor;
  #inodes = 0;
  #stamp = 0n;

  constructor(world: World) {
    this.#world = world;
    for (const dir of ['/sim', '/sim/work', '/sim/state', '/sim/state/sessions']) this.#make(dir, true).isNamed = true;
  }

  has(path: string): boolean {
    return this.files.has(path);
  }

  /** What a power cut leaves: any part of what was not durable, and no lock that could be read for sure. */
  cutPower(random: Random): void {
    this.descriptors.clear();
    this.faults.writes = undefined;
    this.faults.syncs = 0;
    for (const [path, inode] of this.files) {
      if (inode.isDirectory) continue;
      if (!inode.isNamed && random.chance(0.5)) {
        this.files.delete(path);
        continue;
      }
      if (!inode.isNamed || inode.durable === 0) this.unkept.add(path);
      const durable = inode.isNamed ? inode.durable : 0;
      inode.size = random.chance(0.3) ? inode.size : random.int(durable, inode.size);
      inode.durable = inode.size;
      inode.isNamed = true;
    }
    this.processStart += 1;
  }

  text(path: string, length?: number): string {
    const inode = this.files.get(path);
    return inode === undefined ? '' : inode.data.toString('utf8', 0, length ?? inode.size);
  }

  durableText(path: string): string {
    const inode = this.files.get(path);
    return inode === undefined || !inode.isNamed ? '' : inode.data.toString('utf8', 0, inode.durable);
  }

  openSync(path: string, flags: number | string = 'r', mode = 0o644): number {
    const wanted = typeof flags === 'number' ? flags : 0;
    let inode = this.files.get(path);
    if ((wanted & constants.O_CREAT) !== 0) {
      if (inode !== undefined && (wanted & constants.O_EXCL) !== 0) throw fault('EEXIST', path);
      this.#mayWrite(path);
      inode ??= this.#make(path, false, mode);
    }
    if (inode === undefined) throw fault('ENOENT', path);
    const fd = this.#next++;
    this.descriptors.set(fd, { inode, path });
    return fd;
  }

  closeSync(fd: number): void {
    this.descriptors.delete(fd);
  }

  writeSync(fd: number, bytes: Buffer, offset: number, length: number): number {
    const { inode, path } = this.#of(fd);
    if (!this.#world.touch()) return length;
    const code = this.faults.writes;
    // A disk that gets full takes a part first.
    const taken = code === undefined ? length : this.#world.random.int(0, Math.max(0, length - 1));
    if (code !== undefined && this.#world.random.chance(0.5)) throw fault(code, path);
    this.#append(inode, bytes.subarray(offset, offset + taken));
    if (code !== undefined) {
      if (taken === 0) throw fault(code, path);
      return taken;
    }
    return length;
  }

  readSync(fd: number, bytes: Buffer, offset: number, length: number, position: number): number {
    const { inode } = this.#of(fd);
    const end = Math.min(inode.size, position + length);
    return end <= position ? 0 : inode.data.copy(bytes, offset, position, end);
  }

  fstatSync(fd: number, options?: { bigint?: boolean }): unknown {
    return stat(this.#of(fd).inode, options?.bigint === true);
  }

  lstatSync(path: string, options?: { bigint?: boolean; throwIfNoEntry?: boolean }): unknown {
    const inode = this.files.get(path);
    if (inode === undefined) {
      if (options?.throwIfNoEntry === false) return undefined;
      throw fault('ENOENT', path);
    }
    return stat(inode, options?.bigint === true);
  }

  ftruncateSync(fd: number, size: number): void {
    const { inode } = this.#of(fd);
    if (!this.#world.touch()) return;
    inode.size = size;
    inode.durable = Math.min(inode.durable, size);
  }

  fchmodSync(): void {}

  chmodSync(): void {}

  mkdirSync(path: string, options?: { recursive?: boolean }): string | undefined {
    if (this.files.has(path)) {
      if (options?.recursive === true) return undefined;
      throw fault('EEXIST', path);
    }
    if (this.#world.touch()) this.#make(path, true).isNamed = true;
    return path;
  }

  linkSync(from: string, to: string): void {
    const inode = this.files.get(from);
    if (inode === undefined) throw fault('ENOENT', from);
    if (this.files.has(to)) throw fault('EEXIST', to);
    if (!this.#world.touch()) return;
    inode.nlink += 1;
    this.files.set(to, inode);
  }

  renameSync(from: string, to: string): void {
    const inode = this.files.get(from);
    if (inode === undefined) throw fault('ENOENT', from);
    if (!this.#world.touch()) return;
    const replaced = this.files.get(to);
    if (replaced !== undefined) replaced.nlink -= 1;
    this.files.delete(from);
    this.files.set(to, inode);
  }

  unlinkSync(path: string): void {
    const inode = this.files.get(path);
    if (inode === undefined) throw fault('ENOENT', path);
    if (!this.#world.touch()) return;
    inode.nlink -= 1;
    this.files.delete(path);
  }

  rmSync(path: string): void {
    if (this.files.has(path)) this.unlinkSync(path);
  }

  existsSync(path: string): boolean {
    return this.files.has(path);
  }

  writeFileSync(path: string, text: string, options?: { flag?: string }): void {
    if (this.files.has(path) && options?.flag === 'wx') throw fault('EEXIST', path);
    this.#mayWrite(path);
    if (!this.#world.touch()) return;
    const inode = this.#make(path, false);
    this.#append(inode, Buffer.from(text));
  }

  readFileSync(from: string | number): string {
    if (typeof from === 'number') {
      const { inode } = this.#of(from);
      return inode.data.toString('utf8', 0, inode.size);
    }
    if (!this.files.has(from)) throw fault('ENOENT', from);
    return this.text(from);
  }

  readdirSync(path: string): string[] {
    return [...this.files.keys()].filter((one) => one.startsWith(`${path}/`)).map((one) => one.slice(path.length + 1));
  }

  /** Covers what was written when it began. */
  sync(fd: number, done: (error: Error | null) => void): void {
    const world = this.#world;
    const { inode, path } = this.#of(fd);
    if (!world.touch()) return;
    const covers = inode.size;
    const delay = world.random.chance(0.05) ? world.random.next() * 300 : world.random.next() * 6;
    const fails = this.faults.syncs > 0;
    if (fails) this.faults.syncs -= 1;
    const { realm } = world;
    // What the kernel has begun ends also for a thread that is gone.
    const settle = (): void => {
      if (!fails) this.#settle(inode, path, covers);
      if (realm.dead) return;
      world.realm = realm;
      done(fails ? fault('EIO', path) : null);
    };
    world.after(delay, settle, { realm: world.main, kind: 'sync' });
  }

  #settle(inode: Inode, path: string, covers: number): void {
    inode.durable = Math.max(inode.durable, Math.min(covers, inode.size));
    if (!inode.isDirectory) return;
    for (const [name, one] of this.files) if (name.startsWith(`${path}/`)) one.isNamed = true;
  }

  #of(fd: number): Descriptor {
    const found = this.descriptors.get(fd);
    if (found === undefined) throw fault('EBADF', String(fd));
    return found;
  }

  #mayWrite(path: string): void {
    if (this.faults.writes !== undefined) throw fault(this.faults.writes, path);
  }

  #make(path: string, isDirectory: boolean, mode = 0o600): Inode {
    this.#inodes += 1;
    this.#stamp += 1n;
    const inode: Inode = {
      ino: this.#inodes,
      data: Buffer.alloc(0),
      size: 0,
      durable: 0,
      isNamed: false,
      nlink: 1,
      mtimeNs: this.#stamp,
      mode: 0o100_000 | mode,
      isDirectory,
    };
    this.files.set(path, inode);
    return inode;
  }

  #append(inode: Inode, bytes: Buffer): void {
    const size = inode.size + bytes.length;
    if (size > inode.data.length) {
      const grown = Buffer.alloc(Math.max(4096, size * 2));
      inode.data.copy(grown, 0, 0, inode.size);
      inode.data = grown;
    }
    bytes.copy(inode.data, inode.size);
    inode.size = size;
  }
}

function stat(inode: Inode, big: boolean): unknown {
  const number = (value: number): number | bigint => (big ? BigInt(value) : value);
  return {
    ino: number(inode.ino),
    size: number(inode.size),
    nlink: number(inode.nlink),
    mode: inode.mode,
    mtimeNs: inode.mtimeNs,
    ctimeMs: 0,
    isFile: () => !inode.isDirectory,
    isDirectory: () => inode.isDirectory,
    isSymbolicLink: () => false,
  };
}

export function fault(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
