/**
 * What changed in a file, as small before-and-after pairs with three lines of context, bounded in time and size.
 *
 * The equal lines at both ends are set aside first, so the cost follows the change and not the file.
 */
import { structuredPatch } from 'diff';
import type { StructuredPatchHunk } from 'diff';
import type { JsonObject } from '../../shared/errors.ts';
import type { FileDiff } from '../../shared/render-intents.ts';

const contextLines = 3;
/** Past this many changed lines `diff` gives up, after about 80 ms; the changed part is then shown as one piece. */
const maxEditLength = 1000;
const maxDiffMs = 200;

/** What a result's `meta` may hold, as JSON. */
export const maxDiffBytes = 192 * 1024;

/** Before and after of each changed place. Both texts use the same line endings. Empty when nothing changed. */
export function diffHunks(path: string, before: string, after: string): FileDiff[] {
  if (before === after) {
    return [];
  }
  const oldLines = before.split('\n');
  const newLines = after.split('\n');
  const shared = Math.min(oldLines.length, newLines.length);
  let head = 0;
  while (head < shared && oldLines[head] === newLines[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < shared - head && oldLines.at(-1 - tail) === newLines.at(-1 - tail)) {
    tail += 1;
  }
  const from = Math.max(0, head - contextLines);
  const behind = Math.max(0, tail - contextLines);
  // Lines that follow were cut off here, so the last one kept does end with a newline.
  const end = behind > 0 ? '\n' : '';
  const oldPart = oldLines.slice(from, oldLines.length - behind).join('\n') + end;
  const newPart = newLines.slice(from, newLines.length - behind).join('\n') + end;
  const patch = structuredPatch('', '', oldPart, newPart, undefined, undefined, {
    context: contextLines,
    maxEditLength,
    timeout: maxDiffMs,
  });
  if (patch === undefined) {
    return [{ path, oldText: oldPart, newText: newPart }];
  }
  return patch.hunks.map((hunk) => ({ path, oldText: side(hunk, '-'), newText: side(hunk, '+') }));
}

/** One side of a hunk as text; the last newline is there only when the file has it there. */
function side(hunk: StructuredPatchHunk, sign: '-' | '+'): string {
  const lines: string[] = [];
  let endsWithNewline = true;
  let lastTaken = false;
  for (const line of hunk.lines) {
    if (line.startsWith('\\')) {
      // "No newline at end of file" belongs to the line right before it.
      endsWithNewline = endsWithNewline && !lastTaken;
      continue;
    }
    lastTaken = line.startsWith(' ') || line.startsWith(sign);
    if (lastTaken) {
      lines.push(line.slice(1));
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}${endsWithNewline ? '\n' : ''}`;
}

/** The diffs that fit into a result, in order, and how many were left out. */
export function boundedDiffs(diffs: readonly FileDiff[]): { readonly shown: FileDiff[]; readonly omitted: number } {
  const shown: FileDiff[] = [];
  let bytes = 0;
  for (const diff of diffs) {
    // Cheap look first: escaping never makes JSON shorter than the text.
    if (diff.newText.length + (diff.oldText?.length ?? 0) > maxDiffBytes) {
      continue;
    }
    const size = Buffer.byteLength(JSON.stringify(diff));
    if (bytes + size <= maxDiffBytes) {
      bytes += size;
      shown.push(diff);
    }
  }
  return { shown, omitted: diffs.length - shown.length };
}

/** Diffs as plain data for `meta`. */
export function diffsToMeta(diffs: readonly FileDiff[]): JsonObject {
  const { shown, omitted } = boundedDiffs(diffs);
  return { diffs: shown.map((diff) => ({ ...diff })), omitted };
}

/** The reverse, tolerant of whatever a log holds. */
export function diffsFromMeta(meta: JsonObject | undefined): FileDiff[] {
  const list = Array.isArray(meta?.['diffs']) ? meta['diffs'] : [];
  const diffs: FileDiff[] = [];
  for (const entry of list) {
    if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
      continue;
    }
    const { path, oldText, newText } = entry;
    if (typeof path === 'string' && typeof newText === 'string' && (typeof oldText === 'string' || oldText === null)) {
      diffs.push({ path, oldText, newText });
    }
  }
  return diffs;
}
