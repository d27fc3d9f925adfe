/** The memory bound of a process that nobody gave one. */
import { totalmem } from 'node:os';

export const mebibyte = 1024 * 1024;
const share = 0.8;

/** Four fifths of what the process may use: of its control group's limit where it has one, else of the machine's memory. */
export function defaultRssMb(): number {
  // Older releases say 0, and one without a limit a number beyond all memory.
  const limit = process.constrainedMemory();
  const usable = limit > 0 && limit < totalmem() ? limit : totalmem();
  return Math.max(128, Math.floor((usable * share) / mebibyte));
}
