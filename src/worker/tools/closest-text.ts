/**
 * Where a text that was not found may have been meant: a cheap hint for a model whose quotation is slightly off. Pure.
 */
const maxHintLine = 120;
/** A line shares at least this many characters with the wanted one to count as close. */
const minSharedPrefix = 12;

/** One sentence that names a place, or `undefined` when nothing comes near. `text` and `wanted` use LF. */
export function closestText(text: string, wanted: string): string | undefined {
  const lines = text.split('\n');
  const wantedLines = wanted.split('\n').map((line) => line.trim());
  const firstAt = wantedLines.findIndex((line) => line !== '');
  const first = wantedLines[firstAt];
  if (first === undefined) {
    return undefined;
  }
  let sameLine = -1;
  let nearLine = -1;
  let nearest = minSharedPrefix - 1;
  for (const [index, line] of lines.entries()) {
    const trimmed = line.trim();
    if (trimmed === first) {
      if (sameBlock(lines, index - firstAt, wantedLines)) {
        return `Lines ${index - firstAt + 1} - ${index - firstAt + wantedLines.length} match except for blanks at the ends of lines or the indentation.`;
      }
      sameLine = sameLine === -1 ? index : sameLine;
    } else if (sameLine === -1) {
      const shared = sharedPrefix(trimmed, first);
      if (shared > nearest) {
        nearest = shared;
        nearLine = index;
      }
    }
  }
  if (sameLine !== -1) {
    return `Its first line is at line ${sameLine + 1}, but what follows differs.`;
  }
  const near = lines[nearLine];
  return near === undefined ? undefined : `The closest line is ${nearLine + 1}: ${near.trim().slice(0, maxHintLine)}`;
}

function sameBlock(lines: readonly string[], start: number, wanted: readonly string[]): boolean {
  return start >= 0 && start + wanted.length <= lines.length && wanted.every((line, index) => lines[start + index]?.trim() === line);
}

function sharedPrefix(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < end && a[shared] === b[shared]) {
    shared += 1;
  }
  return shared;
}
