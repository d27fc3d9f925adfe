/**
 * Reads stdin to its end, counting lines as cheaply as can be, and prints a {@link PipeReading}.
 */
export interface PipeReading {
  /** Whole lines, the last one included. */
  readonly lines: number;
  readonly bytes: number;
  /** From the first byte to the last. */
  readonly ms: number;
  readonly lastLine: string;
}

let lines = 0;
let bytes = 0;
let firstAt = 0;
let tail = '';
process.stdin.on('data', (chunk: Buffer) => {
  if (bytes === 0) firstAt = performance.now();
  bytes += chunk.length;
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
  // The last line is short: two pieces hold it even when it was cut.
  tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - 1000))).slice(-1000);
});
process.stdin.on('end', () => {
  const reading: PipeReading = { lines, bytes, ms: performance.now() - firstAt, lastLine: tail.trimEnd().split('\n').at(-1) ?? '' };
  process.stdout.write(`${JSON.stringify(reading)}\n`);
});
