import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import t from 'tap';
import type { EventInput, EventType, LogEvent } from '../../../../src/shared/events.ts';
import { eventTypes } from '../../../../src/shared/log/event-types.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { type LogReading, readLog } from '../../../../src/worker/log/log-reader.ts';
import { sample, sampleHeader, sampleId, samples, wholeTurn } from '../../shared/log/sample-events.ts';
import { makeLog, openLog } from './open-log.ts';
import { testSeed } from '../../../support/test-seed.ts';

const children = new URL('./children/', import.meta.url);

t.test('property: any sequence of events reads back as it was written', async (t) => {
  // Texts and members of any kind beside the ones that give a type its shape.
  const extra = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ noUnicodeString: false }), {
    maxKeys: 4,
    noNullPrototype: true,
  });
  const anyEvent = fc
    .record({ type: fc.constantFrom(...(Object.keys(eventTypes) as EventType[])), extra })
    .map(({ type, extra }) => ({ type, data: { ...extra, ...samples[type] } }));
  const stateDir = t.testdir();
  t.comment(`TEST_SEED=${testSeed}`);
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { maxLength: 30 }), async (inputs) => {
      rmSync(join(stateDir, 'sessions'), { recursive: true, force: true });
      // The end closes whatever the sequence opened: repair must add nothing.
      const { paths, written } = await makeLog(stateDir, [...(inputs as EventInput[]), sample('turn/end')]);
      const { log, events } = await openLog(paths);
      await log.close();
      return JSON.stringify(events) === JSON.stringify(written) && log.report.torn === undefined;
    }),
    { seed: testSeed, numRuns: 100 },
  );
});

t.test('a log cut at any byte loads without its torn record only, and goes on', async (t) => {
  const stateDir = t.testdir();
  const { paths, written } = await makeLog(stateDir, wholeTurn);
  const whole = readFileSync(paths.log);
  const ends = [...whole.keys()].filter((index) => whole[index] === 10).map((index) => index + 1);
  const headerEnd = ends[0] ?? 0;
  let wrong = 0;
  for (let length = headerEnd; length <= whole.length; length += 1) {
    writeFileSync(paths.log, whole.subarray(0, length));
    const { log, events } = await openLog(paths, { sync: async () => {} });
    const complete = ends.filter((end) => end <= length).length - 1;
    const keptEnd = ends[complete] ?? 0;
    const torn = keptEnd === length ? undefined : { offset: keptEnd, bytes: length - keptEnd, line: complete + 2 };
    const isAsWritten = JSON.stringify(events.slice(0, complete)) === JSON.stringify(written.slice(0, complete));
    const added = log.append(sample('mode/change'));
    await log.close();
    const again = await readAll(paths);
    const isWhole = JSON.stringify(again.events) === JSON.stringify([...events, added]) && again.torn === undefined;
    const isClosed = events.length === complete + log.report.repaired;
    if (!isAsWritten || !isWhole || !isClosed || JSON.stringify(log.report.torn) !== JSON.stringify(torn)) {
      wrong += 1;
      t.fail(`cut at ${length}`, { report: log.report, torn, isAsWritten, isWhole, isClosed });
    }
  }
  t.equal(wrong, 0, `${whole.length - headerEnd + 1} cuts`);
  for (const length of [0, 1, headerEnd - 1]) {
    writeFileSync(paths.log, whole.subarray(0, length));
    await t.rejects(openLog(paths), { code: 'LOG_CORRUPT', data: { line: 1 } }, `header cut at ${length}`);
    t.equal(statSync(paths.log).size, length, 'left alone');
  }
});

async function readAll(paths: SessionPaths): Promise<LogReading & { events: LogEvent[] }> {
  const fd = openSync(paths.log, 'r');
  const events: LogEvent[] = [];
  try {
    const sink = (event: LogEvent) => void events.push(event);
    return { ...(await readLog({ fd, path: paths.log, size: statSync(paths.log).size }, sink)), events };
  } finally {
    closeSync(fd);
  }
}

/** What is wrong with how the damage in `line` is refused, by a mere reading or by a whole opening. */
async function refusal(paths: SessionPaths, line: number, isWholeOpening: boolean): Promise<string | undefined> {
  try {
    await (isWholeOpening ? openLog(paths).then(({ log }) => log.close()) : readAll(paths));
    return 'accepted';
  } catch (error) {
    const { code, data, message } = error as { code: string; data?: { file: string; line: number }; message: string };
    const isNamed = data?.line === line && data.file === `${sampleId}.jsonl` && message.includes(`line ${line}`);
    return code === 'LOG_CORRUPT' && isNamed ? undefined : `${code} ${message}`;
  }
}

t.test('any flipped bit before the last line is refused by name and line, and the file left alone', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const whole = readFileSync(paths.log);
  const lastLine = whole.lastIndexOf(10, whole.length - 2) + 1;
  const headerEnd = whole.indexOf(10) + 1;
  let passed = 0;
  let line = 2;
  for (let index = headerEnd; index < lastLine; index += 1) {
    const bytes = Buffer.from(whole);
    bytes[index] = (bytes[index] ?? 0) ^ (1 << (index % 8));
    writeFileSync(paths.log, bytes);
    const problem = await refusal(paths, line, index % 23 === 0);
    if (problem !== undefined || !readFileSync(paths.log).equals(bytes) || existsSync(paths.lock)) {
      passed += 1;
      t.fail(`byte ${index} of line ${line}: ${problem ?? 'file or lock changed'}`);
    }
    line += whole[index] === 10 ? 1 : 0;
  }
  t.equal(passed, 0, `${lastLine - headerEnd} flips`);
});

t.test('a writer killed at any moment loses no record that a barrier acknowledged', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const child = fileURLToPath(new URL('writer-child.js', children));
  let total = 0;
  let tornTails = 0;
  for (let round = 0; round < 10; round += 1) {
    const writer = spawn(process.execPath, [child, paths.log, paths.lock, `round-${round}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => writer.kill('SIGKILL'));
    let acknowledged = 0;
    let left = 1 + ((round * 13) % 7);
    for await (const line of createInterface({ input: writer.stdout })) {
      acknowledged = Number(line);
      left -= 1;
      if (left === 0) {
        writer.kill('SIGKILL');
      }
    }
    if (writer.exitCode === null && writer.signalCode === null) {
      await once(writer, 'exit');
    }
    const { log, events } = await openLog(paths);
    await log.close();
    tornTails += log.report.torn === undefined ? 0 : 1;
    t.ok(acknowledged > total && log.eventCount >= acknowledged, `${log.eventCount} events, ${acknowledged} acknowledged`);
    t.ok(events.every((event, seq) => event.type === 'history/pruned' && event.data.keepChars === seq));
    total = log.eventCount;
  }
  t.comment(`${total} events, ${tornTails} torn tails`);
});
