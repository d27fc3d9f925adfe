/**
 * Reads the instruction files that were found: regular files alone, the beginning of each, and no more of all together than
 * a model can bear.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { realpath } from 'node:fs/promises';
import { openRegularFile } from '../tools/open-regular-file.ts';
import { sliceWhole } from '../display/title-line.ts';
import type { FoundFile } from './instruction-places.ts';
import { type InstructionFile, longestFile, longestTotal, shownText } from './instruction-text.ts';

/** In the order given. What cannot be read, is no text, or is empty is left out. */
export async function readInstructions(found: readonly FoundFile[]): Promise<InstructionFile[]> {
  const read = await Promise.all(found.map(readOne));
  const contents = new Set<string>();
  const files: (InstructionFile & Pick<FoundFile, 'nearness' | 'isBelow'>)[] = [];
  let left = longestTotal;
  // What is nearest to the work must not be the part that has no room; of equal texts the nearest stays.
  for (const file of read.toSorted((a, b) => rankOf(b) - rankOf(a))) {
    if (file === undefined || contents.has(file.text)) continue;
    contents.add(file.text);
    const text = sliceWhole(file.text, left);
    left -= text.length;
    files.push({ ...file, text, isClipped: file.isClipped || text.length < file.text.length, digest: digestOf(text) });
  }
  return files.sort((a, b) => a.nearness - b.nearness).map(({ nearness: _nearness, isBelow: _isBelow, ...file }) => file);
}

type ReadFile = Omit<InstructionFile, 'digest'> & Pick<FoundFile, 'nearness' | 'isBelow'>;

/** The person's own file comes first of all; those that came later must not take the room of those before. */
function rankOf(file: ReadFile | undefined): number {
  if (file === undefined) return Number.NEGATIVE_INFINITY;
  if (file.isBelow) return -1 - file.nearness;
  return file.isUsers ? Number.POSITIVE_INFINITY : file.nearness;
}

async function readOne({ path, target, isUsers, isBelow, nearness }: FoundFile): Promise<ReadFile | undefined> {
  try {
    // The person's own may well be a link, or lie behind one.
    const { handle, stats } = await openRegularFile(isUsers ? await realpath(target) : target, path);
    try {
      const bytes = await readBeginning(handle, longestFile);
      if (bytes.includes(0)) return undefined;
      const shown = shownText(new TextDecoder('utf-8').decode(bytes));
      const text = sliceWhole(shown, longestFile);
      if (text === '') return undefined;
      return {
        path,
        isUsers,
        isBelow,
        nearness,
        text,
        bytes: stats.size,
        isClipped: stats.size > bytes.length || text.length < shown.length,
      };
    } finally {
      await handle.close();
    }
  } catch {
    // Gone, swapped for something else, or not for this user to read: a session works without it.
    return undefined;
  }
}

async function readBeginning(handle: FileHandle, most: number): Promise<Buffer> {
  const buffer = Buffer.alloc(most);
  let filled = 0;
  while (filled < most) {
    const { bytesRead } = await handle.read(buffer, filled, most - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
