/**
 * Worker of the race tests: swaps `cwd/d` for a link to `outside` and back, without end, each state held for a moment.
 */
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';

const { cwd, outside } = workerData as { cwd: string; outside: string };
const place = join(cwd, 'd');
const aside = join(cwd, 'aside');
const cell = new Int32Array(new SharedArrayBuffer(4));

function hold(): void {
  Atomics.wait(cell, 0, 0, Math.random());
}

/** A write may put a file into the directory while it is being removed. */
function clear(): void {
  for (;;) {
    try {
      rmSync(place, { recursive: true, force: true });
      return;
    } catch {
      // Not empty after all: again.
    }
  }
}

/** Repeats `act` until it works: a write may have made the directory anew meanwhile. */
function force(act: () => void): void {
  for (;;) {
    try {
      act();
      return;
    } catch {
      clear();
    }
  }
}

for (;;) {
  hold();
  renameSync(place, aside);
  force(() => symlinkSync(outside, place));
  hold();
  clear();
  force(() => renameSync(aside, place));
}
