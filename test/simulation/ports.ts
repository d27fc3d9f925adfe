/**
 * Message channels between simulated threads: as Node's, but that the seed decides how long a message takes. Messages of one port keep
 * their order; those of two ports have none. What a thread had posted before its end arrives, and then its ports close.
 */
import { EventEmitter } from 'node:events';
import type { Realm, World } from './world.ts';

export class SimulatedPort extends EventEmitter {
  realm: Realm;
  peer: SimulatedPort | undefined;
  closed = false;
  readonly #world: World;
  readonly #all: Set<SimulatedPort>;
  readonly #inbox: unknown[] = [];
  readonly #line = {};

  constructor(world: World, all: Set<SimulatedPort>) {
    super();
    this.#world = world;
    this.#all = all;
    this.realm = world.realm;
    all.add(this);
    this.setMaxListeners(0);
    this.on('newListener', (name) => {
      if (name === 'message' && this.#inbox.length > 0) {
        for (const data of this.#inbox.splice(0)) this.#world.after(0, () => this.#deliver(data), { realm: this.realm, kind: 'message' });
      }
    });
  }

  postMessage(message: unknown, transferred: readonly unknown[] = []): void {
    const { peer } = this;
    if (!this.#world.touch() || this.closed || peer === undefined || peer.closed) return;
    const ports = transferred.filter((one) => one instanceof SimulatedPort);
    const data = cloned(message, ports);
    // Transferred: they are nobody's until they arrive, and survive the end of who sent them.
    const moved = ports.map((port) => ({ port, from: port.realm }));
    for (const { port } of moved) port.realm = peer.realm;
    peer.#receive(() => {
      for (const { port } of moved) port.realm = peer.realm;
      peer.#deliver(data);
    });
  }

  start(): void {}

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  close(): void {
    if (!this.#world.touch()) return;
    this.closeNow();
  }

  /** Both ends, each behind what was posted to it. */
  closeNow(): void {
    if (this.closed) return;
    this.closed = true;
    this.#all.delete(this);
    this.#world.after(0, () => this.emit('close'), { realm: this.realm, kind: 'close' });
    const { peer } = this;
    if (peer !== undefined) peer.#receive(() => peer.closedByPeer());
  }

  closedByPeer(): void {
    if (this.closed) return;
    this.closed = true;
    this.#all.delete(this);
    this.emit('close');
  }

  #receive(arrive: () => void): void {
    const world = this.#world;
    // The realm of arrival is looked up then: the port may be on its way to another thread itself.
    const event = (): void => {
      if (this.realm.dead) return;
      world.realm = this.realm;
      arrive();
    };
    world.after(world.latency(), event, { realm: world.main, line: this.#line, kind: 'message' });
  }

  #deliver(data: unknown): void {
    if (this.closed) return;
    if (this.listenerCount('message') === 0) this.#inbox.push(data);
    else this.emit('message', data);
  }
}

export function simulatedChannel(world: World, all: Set<SimulatedPort>): { port1: SimulatedPort; port2: SimulatedPort } {
  const port1 = new SimulatedPort(world, all);
  const port2 = new SimulatedPort(world, all);
  port1.peer = port2;
  port2.peer = port1;
  return { port1, port2 };
}

/** As structured clone does, with ports that are handed over. */
export function cloned(value: unknown, ports: readonly SimulatedPort[]): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw new Error('could not be cloned');
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof SimulatedPort) {
    if (!ports.includes(value)) throw new Error('a port is posted and not transferred');
    return value;
  }
  if (value instanceof SharedArrayBuffer) return value;
  if (Array.isArray(value)) return value.map((one) => cloned(one, ports));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cloned(one, ports)]));
}
