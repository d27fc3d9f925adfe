/**
 * Where the broker leaves what commands are kept in, for every thread to read: memory that all share, since a session that is put on a thread
 * has no way to the broker yet, and its first log event must say it.
 */
import type { SandboxState } from './sandbox.ts';

/** Two texts of this size; the one that counts is never written to. */
const textBytes = 2_048;
const headerBytes = 12;
/** Words of the header: which text counts (0 for none), and the length of each. */
const chosen = 0;

/** Of every Node that is supported, and not yet in the types of the language version. */
type WaitingAtomics = typeof Atomics & {
  waitAsync(words: Int32Array, index: number, value: number, ms: number): { readonly value: string | Promise<string> };
};

export function makeSandboxSlot(): SharedArrayBuffer {
  return new SharedArrayBuffer(headerBytes + 2 * textBytes);
}

/** By one thread at a time. What is too long for it is left out. */
export function writeSandboxState(slot: SharedArrayBuffer, state: SandboxState): void {
  const words = new Int32Array(slot, 0, headerBytes / 4);
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  if (bytes.length > textBytes) return;
  const next = Atomics.load(words, chosen) === 1 ? 2 : 1;
  new Uint8Array(slot, headerBytes + (next - 1) * textBytes, bytes.length).set(bytes);
  Atomics.store(words, next, bytes.length);
  Atomics.store(words, chosen, next);
  Atomics.notify(words, chosen);
}

export function readSandboxState(slot: SharedArrayBuffer): SandboxState | undefined {
  const words = new Int32Array(slot, 0, headerBytes / 4);
  const which = Atomics.load(words, chosen);
  if (which === 0) return undefined;
  // A copy, since no decoder takes shared memory.
  const bytes = new Uint8Array(slot, headerBytes + (which - 1) * textBytes, Atomics.load(words, which)).slice();
  return JSON.parse(new TextDecoder().decode(bytes)) as SandboxState;
}

/** The same, waiting for at most `ms`. Never rejects. */
export async function awaitSandboxState(slot: SharedArrayBuffer, ms: number): Promise<SandboxState | undefined> {
  const known = readSandboxState(slot);
  if (known !== undefined) return known;
  await (Atomics as WaitingAtomics).waitAsync(new Int32Array(slot, 0, headerBytes / 4), chosen, 0, ms).value;
  return readSandboxState(slot);
}
