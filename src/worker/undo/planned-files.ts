/**
 * From the recorded changes of files to what each file should hold again. Pure.
 */
import type { FileState } from '../../shared/undo-events.ts';
import type { RecordedChange } from './log-timeline.ts';

export interface PlannedFile {
  /** Canonical. */
  readonly path: string;
  /** What it should hold; `null` for no file. */
  readonly target: FileState | null;
  /** Why the content of `target` was not kept. */
  readonly notKept: RecordedChange['notKept'];
  /** What it holds if nobody else has touched it since. */
  readonly left: readonly (FileState | null)[];
  /** Somebody else changed it between two turns: that would go, too. */
  readonly mixed: boolean;
  /** Directories that were made for it, outermost first. */
  readonly directories: readonly string[];
}

/** What the files were right before event `base`, for every file that was changed since. In the order of their first change. */
export function plannedFiles(changes: readonly RecordedChange[], base: number): PlannedFile[] {
  const byPath = new Map<string, [RecordedChange, ...RecordedChange[]]>();
  for (const change of changes) {
    if (change.seq < base) continue;
    const known = byPath.get(change.path);
    if (known === undefined) byPath.set(change.path, [change]);
    else known.push(change);
  }
  return [...byPath].map(([path, ofPath]) => plannedFile(path, ofPath));
}

/** Whether two descriptions can be of the same content. */
export function isSameState(a: FileState | null, b: FileState | null): boolean {
  if (a === null || b === null) return a === b;
  // Of a content that was too large to look at only the size is known.
  return a.hash === undefined || b.hash === undefined ? a.bytes === b.bytes : a.hash === b.hash;
}

function plannedFile(path: string, changes: readonly [RecordedChange, ...RecordedChange[]]): PlannedFile {
  const [first] = changes;
  let mixed = false;
  let previous: RecordedChange | undefined;
  let directories: string[] = [];
  for (const change of changes) {
    if (previous !== undefined && ownerOf(previous) !== ownerOf(change))
      mixed ||= !statesBehind(previous).some((state) => isSameState(state, change.before));
    if (change.before === null) directories.push(...(change.directories ?? []));
    // Its directories went with it, as far as they were empty; what is there later is somebody else's.
    if (change.after === null) directories = [];
    previous = change;
  }
  return { path, target: first.before, notKept: first.notKept, left: statesBehind(changes.at(-1) ?? first), mixed, directories };
}

/** What a command changes within a turn counts as the turn's: it is what the person asked to have undone. */
function ownerOf(change: RecordedChange): string {
  return change.undo === undefined ? `turn ${change.turn}` : `undo ${change.undo}`;
}

function statesBehind(change: RecordedChange): readonly (FileState | null)[] {
  return change.made ? [change.after] : [change.before, change.after];
}
