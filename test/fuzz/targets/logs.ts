/**
 * A session's log as it might be found: read, opened, mended, opened again, and shown.
 *
 * Whatever is loaded must be the lines of the file, in order, but for one torn line at its end; whatever is refused is left as it was.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ServerError } from '../../../src/shared/errors.ts';
import type { LogEvent } from '../../../src/shared/events.ts';
import { sealLine } from '../../../src/shared/log/line-seal.ts';
import { EventLog } from '../../../src/worker/log/event-log.ts';
import { readLog, type TornTail } from '../../../src/worker/log/log-reader.ts';
import { Projector } from '../../../src/worker/projection/projector.ts';
import { createToolRegistry, everyExtra } from '../../../src/worker/tools/all-tools.ts';
import { validateAgentFrame } from '../../support/acp-schema.ts';
import { sampleHeader, sampleId, samples, wholeTurn } from '../../unit/shared/log/sample-events.ts';
import { expect, type FuzzTarget, Violation } from '../fuzz-target.ts';
import { hostileJson, spoilJson, texts } from '../hostile-values.ts';
import type { Random } from '../random.ts';

const types = Object.keys(samples) as (keyof typeof samples)[];
const registry = createToolRegistry([], everyExtra);

let folder: string | undefined;

export const logsTarget: FuzzTarget = {
  name: 'logs',
  maxInputBytes: 256 * 1024,
  seeds: [logOf(wholeTurn), logOf(types.map((type) => ({ type, data: samples[type] })))],
  generate(random) {
    const lines = [headerLine(random), ...random.list(30, () => random.pick(types)).map((type, seq) => eventLine(random, type, seq))];
    return Buffer.concat(random.chance(2) ? lines : disturb(random, lines));
  },
  async check(input) {
    const path = join((folder ??= mkdtempSync(join(tmpdir(), 'dsh-acp-fuzz-'))), `${sampleId}.jsonl`);
    writeFileSync(path, input, { mode: 0o600 });
    const read = await readAll(path);
    if (read.refused === undefined) compareLines(input, read.events, read.torn);
    expect(readFileSync(path).equals(input), () => 'reading changed the file');
    const opened = await open(path);
    if (opened.refused !== undefined) {
      expect(readFileSync(path).equals(input), () => `a refused log was changed (${opened.refused})`);
      return;
    }
    expect(read.refused === undefined, () => `what reading refuses (${read.refused}) is opened`);
    const again = await open(path);
    expect(
      again.refused === undefined && again.torn === undefined && again.repaired === 0,
      () => `after a repair it is not whole: ${JSON.stringify({ ...again, events: 0 })}`,
    );
    expect(JSON.stringify(again.events) === JSON.stringify(opened.events), () => 'opened again, it holds other events');
    show(opened.events);
  },
  close() {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    folder = undefined;
  },
};

function logOf(events: readonly { readonly type: string; readonly data: object }[]): Buffer {
  return Buffer.concat([
    sealLine(JSON.stringify(sampleHeader())),
    ...events.map(({ type, data }, seq) => sealLine(JSON.stringify({ type, seq, time: 1, data }))),
  ]);
}

function headerLine(random: Random): Buffer {
  const header = sampleHeader();
  if (random.chance(12)) return sealLine(spoilJson(random, header));
  return sealLine(JSON.stringify(random.chance(15) ? { ...header, version: random.pick([0, 2, 99, '1', null]) } : header));
}

function eventLine(random: Random, type: keyof typeof samples, seq: number): Buffer {
  const data = random.chance(30) ? spoilJson(random, samples[type]) : JSON.stringify(retold(random, samples[type]));
  const said = random.chance(100) ? hostileJson(random) : JSON.stringify(random.chance(100) ? 'unknown/event' : type);
  const line = `{"type":${said},"seq":${random.chance(100) ? hostileJson(random, 0) : seq},"time":${1000 + seq},"data":${data}${random.chance(60) ? ',"ignorable":true' : ''}}`;
  return random.chance(20) ? Buffer.from(`${line}\n`) : sealLine(line);
}

/** The same shape with other texts and numbers. */
function retold(random: Random, value: unknown): unknown {
  if (typeof value === 'string') return random.chance(6) ? random.pick(texts) : value;
  if (typeof value === 'number') return random.chance(8) ? random.pick([0, 1, 2, 3]) : value;
  if (Array.isArray(value))
    return value.flatMap((item) => (random.chance(12) ? [] : random.chance(12) ? [item, item] : [retold(random, item)]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, retold(random, item)]));
}

/** Lines that are missing, doubled, moved, joined or cut. */
function disturb(random: Random, lines: readonly Buffer[]): Buffer[] {
  const result = [...lines];
  const at = random.below(result.length);
  const one = result[at]!;
  switch (random.below(7)) {
    case 0:
      result.splice(at, 1);
      break;
    case 1:
      result.splice(at, 0, one);
      break;
    case 2:
      result.push(...result.splice(at, 1));
      break;
    case 3:
      result[at] = one.subarray(0, -1);
      break;
    case 4:
      result[at] = one.subarray(0, random.below(one.length));
      break;
    case 5:
      result.splice(at, 0, Buffer.from(random.pick(['\n', ' \n', '{}\n', 'null\n', '[]\n', '\u0000\n'])));
      break;
    default:
      result.push(one.subarray(0, random.below(one.length)));
  }
  return result;
}

interface Read {
  readonly events: readonly LogEvent[];
  readonly torn?: TornTail | undefined;
  readonly repaired?: number;
  readonly refused?: string;
}

async function readAll(path: string): Promise<Read> {
  const events: LogEvent[] = [];
  const fd = openSync(path, 'r');
  try {
    const { torn } = await readLog({ fd, path, size: statSync(path).size }, (event) => void events.push(event));
    return { events, torn };
  } catch (error) {
    return { events, refused: refusal(error) };
  } finally {
    closeSync(fd);
  }
}

async function open(path: string): Promise<Read> {
  const events: LogEvent[] = [];
  const options = { path, lockPath: `${path}.lock`, serverNonce: 'fuzz', threadId: 1, sync: async () => undefined, now: () => 5 };
  try {
    const log = await EventLog.open({ ...options, onEvent: (event) => void events.push(event) });
    const { torn, repaired } = log.report;
    await log.close();
    return { events, torn, repaired };
  } catch (error) {
    return { events, refused: refusal(error) };
  }
}

function refusal(error: unknown): string {
  if (!(error instanceof ServerError)) throw error;
  expect(error.code === 'LOG_CORRUPT' || error.code === 'LOG_VERSION', () => `refused with ${error.code}: ${error.message}`);
  const { line } = (error.data ?? {}) as { line?: unknown };
  expect(
    error.code === 'LOG_VERSION' || (typeof line === 'number' && line >= 1 && error.message.includes(`line ${line}`)),
    () => `refused without a line: ${error.message}`,
  );
  expect(!/[\p{Cc}]/u.test(error.message) && error.message.length < 600, () => `a message that is not one short line: ${error.message}`);
  return error.code;
}

/** Nothing but ignorable lines and one torn tail may be missing. */
function compareLines(input: Buffer, events: readonly LogEvent[], torn: TornTail | undefined): void {
  const end = torn?.offset ?? input.length;
  const text = input.subarray(0, end).toString('utf8');
  expect(end === 0 || text.endsWith('\n'), () => 'a line without an end was taken');
  if (torn !== undefined) {
    const tail = input.subarray(torn.offset);
    const feed = tail.indexOf(10);
    expect(torn.bytes === tail.length && (feed === -1 || feed === tail.length - 1), () => 'the torn tail is more than one line');
  }
  const lines = text
    .split('\n')
    .slice(1, -1)
    .map((line) => JSON.parse(line) as LogEvent & { ignorable?: boolean; crc?: string });
  const kept = lines.filter(({ type, ignorable }) => types.includes(type) || ignorable !== true);
  expect(kept.length === events.length, () => `${events.length} events of ${kept.length} lines`);
  for (const [index, { crc: _crc, ...event }] of kept.entries())
    expect(
      JSON.stringify(event) === JSON.stringify(events[index]),
      () => `line of event ${index} was read as ${JSON.stringify(events[index])}`,
    );
}

const schema = JSON.parse(readFileSync(new URL('../../../../schemas/event-log.schema.json', import.meta.url), 'utf8')) as object;
const isLegal = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);

/** Events that the schema allows give frames that the protocol allows, in whatever order they come. */
function show(events: readonly LogEvent[]): void {
  if (!events.every((event) => isLegal(event))) return;
  for (const profile of ['editor', 'automation'] as const) {
    const client = { terminalOutput: events.length % 2 === 0, notices: true, compaction: true };
    const projector = new Projector({
      sessionId: sampleId,
      cwd: '/srv/project',
      profile,
      client,
      tools: (name) => registry.get(name),
      replay: true,
    });
    for (const event of events) for (const frame of projector.projectFrames(event)) checkFrame(frame, event.type);
    for (const update of projector.endCards()) checkFrame(projector.frame(update), 'the end');
  }
}

function checkFrame(frame: string, where: string): void {
  if (frame.indexOf('\n') !== frame.length - 1) throw new Violation(`${where}: the frame is not one line`);
  const problems = validateAgentFrame(JSON.parse(frame));
  expect(problems.length === 0, () => `${where}: ${problems.join('; ')}`);
}
