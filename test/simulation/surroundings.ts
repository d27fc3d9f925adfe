/**
 * Puts the simulation in the place of what the program reaches the outside through: timers, clocks, randomness, `node:fs`, message
 * channels. To be called before any source of the program is imported; while no world is current, everything is as ever.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { type Disk, fault } from './disk.ts';
import { type SimulatedPort, simulatedChannel } from './ports.ts';
import type { Pending, World } from './world.ts';

export interface Surroundings {
  readonly world: World;
  readonly disk: Disk;
  readonly ports: Set<SimulatedPort>;
}

/** The event loop's own, whatever is installed. */
export const realImmediate = setImmediate;

let current: Surroundings | undefined;

/** `undefined` gives the real ones back. */
export function surroundWith(surroundings: Surroundings | undefined): void {
  current = surroundings;
}

const require = createRequire(import.meta.url);
let installed = false;

export function installSurroundings(): void {
  if (installed) return;
  installed = true;
  installTimers();
  installClocks();
  installDisk();
  installChannels();
  installFinalizers();
  syncBuiltinESMExports();
  process.on('unhandledRejection', (error) => {
    if (current === undefined) throw error;
    current.world.uncaught(error);
  });
}

/** What the simulated timers hand out. */
class Timer {
  pending: Pending | undefined;
  readonly #set: (timer: Timer) => Pending;

  constructor(set: (timer: Timer) => Pending) {
    this.#set = set;
    this.pending = set(this);
  }

  ref(): this {
    if (this.pending !== undefined) this.pending.unref = false;
    return this;
  }

  unref(): this {
    if (this.pending !== undefined) this.pending.unref = true;
    return this;
  }

  hasRef(): boolean {
    return this.pending?.unref === false;
  }

  refresh(): this {
    if (this.pending !== undefined) this.pending.cancelled = true;
    this.pending = this.#set(this);
    return this;
  }

  stop(): void {
    if (this.pending !== undefined) this.pending.cancelled = true;
    this.pending = undefined;
  }
}

/** Immediates keep their order within a realm. */
function startTimer(world: World, kind: 'timeout' | 'interval' | 'immediate', run: () => void, ms: number): Timer {
  const { realm } = world;
  const origin = world.tellsOrigins ? callerInSource() : undefined;
  const options = { realm, kind, origin, ...(kind === 'immediate' ? { line: realm } : {}) };
  const wait = kind === 'immediate' ? world.random.next() * 0.05 : Math.max(1, ms || 0);
  return new Timer((timer) => {
    const tick = (): void => {
      const unref = timer.pending?.unref === true;
      timer.pending = undefined;
      if (kind === 'interval') {
        timer.pending = world.after(wait, tick, options);
        timer.pending.unref = unref;
      }
      run();
    };
    return world.after(wait, tick, options);
  });
}

/** The innermost call of the program itself. */
function callerInSource(): string {
  const line = (new Error('origin').stack ?? '').split('\n').find((one) => one.includes('/src/'));
  return (
    line
      ?.trim()
      .replace(/^at /, '')
      .replace(/\(?[^ (]*\/src\//, '(src/') ?? 'an unknown call'
  );
}

function installTimers(): void {
  const real = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
  const starting = (kind: 'timeout' | 'interval' | 'immediate', realStart: (...args: any[]) => unknown) =>
    function start(run: (...args: unknown[]) => void, ...rest: any[]): unknown {
      if (current === undefined) return realStart(run, ...rest);
      const args = kind === 'immediate' ? rest : rest.slice(1);
      return startTimer(current.world, kind, () => run(...args), kind === 'immediate' ? 0 : rest[0]);
    };
  const ending = (realEnd: (timer: any) => void) =>
    function end(timer: unknown): void {
      if (timer instanceof Timer) timer.stop();
      else realEnd(timer);
    };
  const patched = {
    setTimeout: starting('timeout', real.setTimeout),
    setInterval: starting('interval', real.setInterval),
    setImmediate: starting('immediate', real.setImmediate),
    clearTimeout: ending(real.clearTimeout),
    clearInterval: ending(real.clearInterval),
    clearImmediate: ending(real.clearImmediate),
  };
  Object.assign(globalThis, patched);
  const promised = require('node:timers/promises');
  const { setTimeout: realSleep, setImmediate: realTurn } = promised;
  promised.setTimeout = (ms: number, value: unknown, options: { signal?: AbortSignal } = {}) => {
    if (current === undefined) return realSleep(ms, value, options);
    const { world } = current;
    const { signal } = options;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        timer.stop();
        reject(signal?.reason as Error);
      };
      const timer = startTimer(
        world,
        'timeout',
        () => {
          signal?.removeEventListener('abort', abort);
          resolve(value);
        },
        ms,
      );
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  };
  promised.setImmediate = (value: unknown, options: unknown) => {
    if (current === undefined) return realTurn(value, options);
    const { world } = current;
    return new Promise((resolve) => startTimer(world, 'immediate', () => resolve(value), 0));
  };
}

function installClocks(): void {
  const realNow = performance.now.bind(performance);
  performance.now = () => (current === undefined ? realNow() : current.world.now);
  const RealDate = Date;
  const realDateNow = Date.now.bind(Date);
  const now = (): number => (current === undefined ? realDateNow() : current.world.wallClock);
  class SimulatedDate extends RealDate {
    constructor(...args: any[]) {
      if (args.length === 0) super(now());
      else super(...(args as [number]));
    }
  }
  SimulatedDate.now = now;
  globalThis.Date = SimulatedDate as unknown as DateConstructor;
  const realRandom = Math.random;
  Math.random = () => (current === undefined ? realRandom() : current.world.random.next());
  const crypto = require('node:crypto');
  const { randomUUID, randomBytes } = crypto;
  const hex = (length: number): string => Array.from({ length }, () => current!.world.random.int(0, 15).toString(16)).join('');
  crypto.randomUUID = (options: unknown) =>
    current === undefined ? randomUUID(options) : `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
  crypto.randomBytes = (size: number, done?: unknown) =>
    current === undefined || done !== undefined ? randomBytes(size, done) : Buffer.from(hex(2 * size), 'hex');
}

const calls = [
  'openSync',
  'closeSync',
  'writeSync',
  'readSync',
  'fstatSync',
  'lstatSync',
  'ftruncateSync',
  'fchmodSync',
  'chmodSync',
  'mkdirSync',
  'linkSync',
  'renameSync',
  'unlinkSync',
  'rmSync',
  'existsSync',
  'writeFileSync',
  'readFileSync',
  'readdirSync',
] as const;

const isOurs = (where: unknown): boolean =>
  typeof where === 'string' ? where.startsWith('/sim') : typeof where === 'number' && where >= 1_000_000;

function installDisk(): void {
  const fs = require('node:fs');
  for (const name of calls) {
    const real = fs[name];
    fs[name] = (where: unknown, ...rest: unknown[]): unknown => {
      if (current === undefined) return real(where, ...rest);
      if (isOurs(where)) return (current.disk[name] as (...args: unknown[]) => unknown)(where, ...rest);
      // Other processes do not exist; our own began when the simulated server did.
      if (name === 'readdirSync' && where === '/proc') return [];
      if (name === 'readFileSync' && where === `/proc/${process.pid}/stat`)
        return `1 (sim) S ${'0 '.repeat(18)}${current.disk.processStart} 0`;
      return real(where, ...rest);
    };
  }
  for (const name of ['fdatasync', 'fsync']) {
    const real = fs[name];
    fs[name] = (fd: number, done: (error: Error | null) => void): void => {
      if (current !== undefined && isOurs(fd)) current.disk.sync(fd, done);
      else real(fd, done);
    };
  }
  const promised = require('node:fs/promises');
  const looks: Record<string, (disk: Disk, path: string) => unknown> = {
    realpath: (disk, path) => {
      disk.lstatSync(path);
      return path;
    },
    stat: (disk, path) => disk.lstatSync(path),
    lstat: (disk, path) => disk.lstatSync(path),
    access: (disk, path) => void disk.lstatSync(path),
  };
  for (const [name, look] of Object.entries(looks)) {
    const real = promised[name];
    promised[name] = (path: string, ...rest: unknown[]): Promise<unknown> => {
      if (current === undefined || !isOurs(path)) return real(path, ...rest);
      const { world, disk } = current;
      const { realm } = world;
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          world.realm = realm;
          try {
            // It ends also for a server that is gone: what the program counts in a module, the next server counts on.
            if (realm.dead) throw fault('EIO', path);
            resolve(look(disk, path));
          } catch (error) {
            reject(error);
          }
        };
        world.after(world.latency(), settle, { realm: world.main, kind: 'look' });
      });
    };
  }
  // A file handle would be a disk of its own: nothing simulated opens one.
  const { open } = promised;
  promised.open = (path: string, ...rest: unknown[]): Promise<unknown> =>
    current !== undefined && isOurs(path)
      ? Promise.reject(Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' }))
      : open(path, ...rest);
}

function installChannels(): void {
  const threads = require('node:worker_threads');
  const Real = threads.MessageChannel;
  threads.MessageChannel = function MessageChannel(): unknown {
    return current === undefined ? new Real() : simulatedChannel(current.world, current.ports);
  };
}

/**
 * What is done when the collector finds something gone would come at a time that no seed decides. And a registry holds what it is to act
 * on: each simulated world would stay.
 */
function installFinalizers(): void {
  globalThis.FinalizationRegistry = class {
    readonly [Symbol.toStringTag] = 'FinalizationRegistry';

    register(): void {}

    unregister(): boolean {
      return false;
    }
  };
}
