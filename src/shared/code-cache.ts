/**
 * Compiled code that threads of one process hand to each other through shared memory.
 *
 * Every thread compiles its bundle anew, and every function in it at its first call: that is most of what a cold thread costs.
 * The first thread publishes V8's code cache once it has loaded, and again once a turn has run (by then the functions that a
 * turn needs are part of it). Later threads load from it. V8 refuses a cache that does not fit, so a bad one only costs time.
 */

/** Two slots, each written once by whichever thread comes first. */
export interface CodeCache {
  /** After the bundle was loaded. */
  readonly early: SharedArrayBuffer;
  /** After a turn. */
  readonly warm: SharedArrayBuffer;
}

/** What a session thread is started with. */
export interface SessionThreadData {
  readonly codeCache: CodeCache;
}

/** Pages that are never written cost nothing. */
const slotBytes = 4 * 1024 * 1024;
const headBytes = 8;
const stateAt = 0;
const lengthAt = 1;
const empty = 0;
const writing = 1;
const ready = 2;

export function createCodeCache(): CodeCache {
  return { early: new SharedArrayBuffer(slotBytes), warm: new SharedArrayBuffer(slotBytes) };
}

/** The published code, or `undefined` while there is none. */
export function readCode(slot: SharedArrayBuffer): Buffer | undefined {
  const head = new Int32Array(slot, 0, 2);
  if (Atomics.load(head, stateAt) !== ready) return undefined;
  // A copy: V8 wants memory that is not shared.
  return Buffer.from(new Uint8Array(slot, headBytes, Atomics.load(head, lengthAt)));
}

/** Publishes what `make` gives, unless another thread has done so, or does it now. Code that does not fit is dropped. */
export function publishCode(slot: SharedArrayBuffer, make: () => Buffer): void {
  const head = new Int32Array(slot, 0, 2);
  if (Atomics.compareExchange(head, stateAt, empty, writing) !== empty) return;
  const code = make();
  if (code.length > slot.byteLength - headBytes) return;
  new Uint8Array(slot, headBytes).set(code);
  Atomics.store(head, lengthAt, code.length);
  Atomics.store(head, stateAt, ready);
}
