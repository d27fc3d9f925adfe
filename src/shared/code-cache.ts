/**
 * Compiled code that threads of one process hand to each other through shared memory.
 *
 * Every thread compiles its bundle anew, and every function in it at its first call: that is most of what a cold thread costs.
 * The first thread publishes V8's code cache once it has loaded, and again once a turn has run (by then the functions that a
 * turn needs are part of it). Later threads load from it. V8 refuses a cache that does not fit, so a bad one only costs time.
 * What an earlier process kept on disk stands in the place of the second one from the beginning.
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
const headBytes = 12;
const stateAt = 0;
const lengthAt = 1;
const originAt = 2;
const empty = 0;
const writing = 1;
const ready = 2;
const ofThread = 0;
const ofDisk = 1;

export function createCodeCache(): CodeCache {
  return { early: new SharedArrayBuffer(slotBytes), warm: new SharedArrayBuffer(slotBytes) };
}

/** The published code, or `undefined` while there is none. In memory of its own: V8 wants none that is shared. */
export function readCode(slot: SharedArrayBuffer): Uint8Array<ArrayBuffer> | undefined {
  const head = headOf(slot);
  if (Atomics.load(head, stateAt) !== ready) return undefined;
  return new Uint8Array(slot, headBytes, Atomics.load(head, lengthAt)).slice();
}

/** Publishes what `make` gives, unless another thread has done so, or does it now. Code that does not fit is dropped. */
export function publishCode(slot: SharedArrayBuffer, make: () => Buffer): void {
  fill(slot, make, ofThread);
}

/** Puts code of an earlier process into an empty slot. */
export function publishStoredCode(slot: SharedArrayBuffer, code: Buffer): void {
  fill(slot, () => code, ofDisk);
}

function fill(slot: SharedArrayBuffer, make: () => Buffer, origin: number): void {
  const head = headOf(slot);
  if (Atomics.compareExchange(head, stateAt, empty, writing) !== empty) return;
  const code = make();
  if (code.length > slot.byteLength - headBytes) return;
  new Uint8Array(slot, headBytes).set(code);
  Atomics.store(head, lengthAt, code.length);
  Atomics.store(head, originAt, origin);
  Atomics.store(head, stateAt, ready);
}

/** V8 did not take what an earlier process left: the slot is free for what a thread of this one makes. */
export function refuseStoredCode(slot: SharedArrayBuffer): void {
  const head = headOf(slot);
  if (Atomics.load(head, originAt) === ofDisk) Atomics.compareExchange(head, stateAt, ready, empty);
}

/** Code that a thread of this process has made; `undefined` while there is none, and where it came from the disk. */
export function readMadeCode(slot: SharedArrayBuffer): Uint8Array | undefined {
  return Atomics.load(headOf(slot), originAt) === ofThread ? readCode(slot) : undefined;
}

function headOf(slot: SharedArrayBuffer): Int32Array {
  return new Int32Array(slot, 0, headBytes / Int32Array.BYTES_PER_ELEMENT);
}
