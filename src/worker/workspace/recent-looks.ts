/**
 * Looks for instruction files that sessions of one thread share: many of them work in the same directories, and a batch of prompts
 * would look at the same names once for each.
 */
import { findInstructions, type FoundFile, type InstructionPlaces } from './instruction-places.ts';

/** How long a look is shared. A burst of prompts is shorter than a person's next keystroke. */
const sharedMs = 50;

interface Look {
  /** Monotonic milliseconds, from before the look. */
  readonly at: number;
  readonly found: readonly FoundFile[];
}

let looks = new Map<string, Look>();
let oldest = 0;

/**
 * {@link findInstructions}, or what it found at most 50 ms ago for another session.
 *
 * @param notBefore monotonic milliseconds: whoever asks knows of changes up to here, so an older look is not for them
 */
export function findRecently(places: InstructionPlaces, entered: readonly string[], notBefore: number): readonly FoundFile[] {
  const now = performance.now();
  if (now - oldest > sharedMs) {
    looks = new Map();
    oldest = now;
  }
  const key = keyOf(places, entered);
  const known = looks.get(key);
  if (known !== undefined && known.at > notBefore) return known.found;
  const found = findInstructions(places, entered);
  looks.set(key, { at: now, found });
  return found;
}

function keyOf({ cwd, additionalDirectories, home, userFile }: InstructionPlaces, entered: readonly string[]): string {
  return [cwd, home, userFile, additionalDirectories.join('\0'), entered.join('\0')].join('\0\0');
}
