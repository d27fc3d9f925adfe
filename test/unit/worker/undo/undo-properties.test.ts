/** Whatever is written, undone, redone and cut off: the files and the conversation are those of the moment that was gone back to. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import type { EventType } from '../../../../src/shared/events.ts';
import { contentHash } from '../../../../src/worker/undo/snapshot-store.ts';
import { UndoRig } from './undo-rig.ts';

const names = ['a', 'b', 'd/c', 'd/e/f'] as const;
const name = fc.constantFrom(...names);
const content = fc.constantFrom('', 'one', 'two', 'three', 'one\nmore');

type Step =
  | { readonly do: 'prompt'; readonly writes: readonly (readonly [string, string])[] }
  | { readonly do: 'undo'; readonly prompts: number; readonly force: boolean; readonly cutAt: EventType | undefined }
  | { readonly do: 'redo'; readonly force: boolean }
  | { readonly do: 'reopen' }
  | { readonly do: 'foreign'; readonly name: string; readonly content: string | undefined };

const prompt = fc.record({ do: fc.constant('prompt' as const), writes: fc.array(fc.tuple(name, content), { maxLength: 3 }) });
const undo = (force: fc.Arbitrary<boolean>) =>
  fc.record({
    do: fc.constant('undo' as const),
    prompts: fc.integer({ min: 1, max: 3 }),
    force,
    cutAt: fc.option(fc.constantFrom<EventType>('undo/start', 'file/snapshot', 'history/rewound'), { nil: undefined, freq: 2 }),
  });
const redo = (force: fc.Arbitrary<boolean>) => fc.record({ do: fc.constant('redo' as const), force });
const reopen = fc.record({ do: fc.constant('reopen' as const) });
const foreign = fc.record({
  do: fc.constant('foreign' as const),
  name,
  content: fc.option(fc.constantFrom('mine', 'mine too'), { nil: undefined, freq: 4 }),
});

function sequences(...episodes: { readonly weight: number; readonly arbitrary: fc.Arbitrary<readonly Step[]> }[]): fc.Arbitrary<Step[]> {
  return fc.array(fc.oneof(...episodes), { maxLength: 9 }).map((chosen) => chosen.flat());
}

interface At {
  /** The files before the step. */
  readonly before: Record<string, string>;
  readonly wasCut: boolean;
  /** How many events the log had before it. */
  readonly events: number;
}

/** In memory, where there is such a place: hundreds of writes reach the disk here, and nothing is about disks. */
function directoryFor(t: Test): string {
  const root = realpathSync(mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'dsh-acp-undo-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

let runs = 0;

async function play(root: string, steps: readonly Step[], check: (rig: UndoRig, step: Step, at: At) => void): Promise<void> {
  runs += 1;
  const directory = join(root, String(runs));
  mkdirSync(join(directory, 'work'), { recursive: true });
  const rig = new UndoRig(directory);
  try {
    for (const step of steps) {
      const before = rig.tree();
      const events = rig.events.length;
      const wasCut = await act(rig, step);
      check(rig, step, { before, wasCut, events });
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Says whether the log cut it off. */
async function act(rig: UndoRig, step: Step): Promise<boolean> {
  switch (step.do) {
    case 'prompt':
      await rig.turn(`prompt ${rig.events.length}`, async () => {
        for (const [path, text] of step.writes) await rig.write(path, text);
      });
      return false;
    case 'undo': {
      rig.failAt = step.cutAt;
      const wasCut = await rig.undo(step.prompts, { force: step.force }).then(
        () => false,
        () => true,
      );
      rig.failAt = undefined;
      if (wasCut) await rig.reopen();
      return wasCut;
    }
    case 'redo':
      await rig.redo({ force: step.force });
      return false;
    case 'reopen':
      await rig.reopen();
      return false;
    case 'foreign':
      rmSync(join(rig.cwd, step.name), { force: true });
      if (step.content === undefined) return false;
      mkdirSync(join(rig.cwd, step.name, '..'), { recursive: true });
      rig.put(step.name, step.content);
      return false;
    default:
      return step satisfies never;
  }
}

/** A moment: the files and what the model is told. */
interface Moment {
  readonly tree: Record<string, string>;
  readonly said: readonly string[];
}

t.test('without others at work, files and conversation are exactly those of the moment gone back to', async (t) => {
  const root = directoryFor(t);
  const unforced = fc.constant(false);
  const steps = sequences(
    { weight: 5, arbitrary: fc.tuple(prompt) },
    { weight: 3, arbitrary: fc.tuple(undo(unforced)) },
    // One that may be cut off, its completion, and the way back.
    { weight: 3, arbitrary: fc.tuple(undo(unforced), undo(unforced), redo(unforced)) },
    { weight: 2, arbitrary: fc.tuple(redo(unforced)) },
    { weight: 1, arbitrary: fc.tuple(reopen) },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      let moments: Moment[] = [{ tree: {}, said: [] }];
      let undone: Moment[][] = [];
      /** Before the first undo that was cut off. */
      let pending: Moment[] | undefined;
      await play(root, taken, (rig, step, { wasCut }) => {
        const now = { tree: rig.tree(), said: rig.said() };
        if (wasCut) {
          // Some files may be restored; what was said stands, and whatever comes next sets out from here.
          if (JSON.stringify(now.said) !== JSON.stringify(moments.at(-1)?.said))
            throw new Error('the conversation went back without the log');
          pending ??= moments;
          moments = [...moments.slice(0, -1), now];
        } else if (step.do === 'prompt') {
          moments = [...moments, now];
          undone = [];
          pending = undefined;
        } else if (step.do === 'undo' && moments.length > 1) {
          undone = [...undone, pending ?? moments];
          moments = moments.slice(0, Math.max(1, moments.length - step.prompts));
          pending = undefined;
        } else if (step.do === 'redo' && undone.length > 0) {
          moments = undone.at(-1) ?? moments;
          undone = undone.slice(0, -1);
          pending = undefined;
        }
        const expected = moments.at(-1);
        if (JSON.stringify(now) !== JSON.stringify(expected))
          throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(now)}`);
      });
    }),
    { numRuns: 40 },
  );
});

t.test('with others at work, nothing that was on the disk is lost: it is there still, or it is kept', async (t) => {
  const root = directoryFor(t);
  const steps = sequences(
    { weight: 5, arbitrary: fc.tuple(prompt) },
    { weight: 2, arbitrary: fc.tuple(foreign, undo(fc.boolean())) },
    { weight: 3, arbitrary: fc.tuple(undo(fc.boolean())) },
    { weight: 3, arbitrary: fc.tuple(redo(fc.boolean())) },
    { weight: 2, arbitrary: fc.tuple(foreign) },
    { weight: 1, arbitrary: fc.tuple(reopen) },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const strange = new Map<string, string>();
      await play(root, taken, (rig, step, { before, events }) => {
        const after = rig.tree();
        if (step.do === 'foreign') {
          if (step.content === undefined) strange.delete(step.name);
          else strange.set(step.name, step.content);
          return;
        }
        for (const [path, text] of Object.entries(before)) {
          if (text === '<directory>' || after[path] === text) continue;
          const kept = join(rig.stateDir, 'session.d/snapshots', contentHash(Buffer.from(text)));
          if (readFileSync(kept, 'utf8') !== text) throw new Error(`${path} was lost`);
          // What somebody else wrote last, no tool has seen and no undo was forced over.
          if (
            (step.do === 'undo' || step.do === 'redo') &&
            !step.force &&
            strange.get(path) === text &&
            after[path] !== text &&
            !wasSeen(rig, path, { text, events })
          ) {
            throw new Error(`${path} was overwritten unasked`);
          }
        }
        if (step.do === 'prompt') for (const [path] of step.writes) strange.delete(path);
      });
    }),
    { numRuns: 40 },
  );
});

/** Whether this content of the path is one that the log said was there. */
function wasSeen(rig: UndoRig, path: string, { text, events }: { readonly text: string; readonly events: number }): boolean {
  const hash = contentHash(Buffer.from(text));
  return rig.events.slice(0, events).some((event) => {
    if (event.type !== 'file/snapshot' || event.data.path !== join(rig.cwd, path)) return false;
    return event.data.before?.hash === hash || event.data.after?.hash === hash;
  });
}

t.test('the store holds one file for a content, private, and nothing else', async (t) => {
  const rig = UndoRig.in(t);
  for (const [index, text] of ['x', 'y', 'x', 'y'].entries()) {
    rig.put('a', text);
    await rig.turn(String(index), () => rig.write('a', 'z'));
  }
  const directory = join(rig.stateDir, 'session.d/snapshots');
  t.strictSame(readdirSync(directory).sort(), [contentHash(Buffer.from('x')), contentHash(Buffer.from('y'))].sort());
  for (const file of readdirSync(directory)) t.equal(statSync(join(directory, file)).mode & 0o777, 0o600);
});
