/** What the queues cost that a prompt stands in: one for each session, and admission over all of them. */
import PQueue from 'p-queue';
import { Admission } from '../../src/main/sessions/admission.ts';
import { measureAll } from './measured.ts';

const count = 1000;
const nothing = (): Promise<void> => Promise.resolve();
const queue = new PQueue({ concurrency: 1 });
const admission = new Admission(1024, 100_000);
const narrow = new Admission(1, 100_000);

async function oneAfterAnother(): Promise<void> {
  for (let i = 0; i < count; i += 1) await queue.add(nothing);
}

async function ofItsOwn(): Promise<void> {
  for (let i = 0; i < count; i += 1) await new PQueue({ concurrency: 1 }).add(nothing);
}

async function atOnce(add: (task: () => Promise<void>) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => add(nothing)));
}

await measureAll('queue', [
  { what: 'p-queue: one task after another', unit: 'task', count, run: oneAfterAnother },
  { what: 'p-queue: 1,000 tasks wait in one queue', unit: 'task', count, run: () => atOnce((task) => queue.add(task)) },
  { what: 'p-queue: a queue for each task', unit: 'task', count, run: ofItsOwn },
  { what: 'admission with room', unit: 'turn', count, run: () => atOnce((task) => admission.admit(task)) },
  { what: 'admission, 1,000 turns wait for one slot', unit: 'turn', count, run: () => atOnce((task) => narrow.admit(task)) },
]);
