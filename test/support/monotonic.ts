/** The clock by which two processes of one machine can tell how long something took from one to the other. */

/**
 * Milliseconds, with fractions, of the machine's monotonic clock: on Linux the same in every process, and never set back. What
 * `performance.now()` counts from differs by process, and `timeOrigin` is a time of day.
 */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
