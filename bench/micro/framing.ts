/**
 * What a frame costs on its way in and out of the main thread: decoding lines, reading envelopes, joining writes.
 */
import { Writable } from 'node:stream';
import { readEnvelope } from '../../src/main/transport/envelope.ts';
import { FrameWriter } from '../../src/main/transport/frame-writer.ts';
import { isNestedDeeperThan } from '../../src/shared/framing/nesting-limit.ts';
import { FrameDecoder } from '../../src/shared/framing/frame-decoder.ts';
import { measureAll, type MicroWork } from './measured.ts';

const CHUNK = 64 * 1024;
const update = `${JSON.stringify({
  jsonrpc: '2.0',
  method: 'session/update',
  params: {
    sessionId: '0198f1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b',
    update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'a few words of text ' } },
  },
})}\n`;

function chunksOf(text: string): Buffer[] {
  const all = Buffer.from(text);
  return Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, i) => all.subarray(i * CHUNK, (i + 1) * CHUNK));
}

function decodeAll(chunks: readonly Buffer[]): number {
  let frames = 0;
  const decoder = new FrameDecoder({ maxFrameBytes: 32 * 1024 * 1024 }, () => {
    frames += 1;
  });
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  return frames;
}

function sink(): Writable {
  return new Writable({ decodeStrings: false, write: (_chunk, _encoding, callback) => callback() });
}

const works: MicroWork[] = [];

interface Frames {
  readonly name: string;
  /** What one run does. */
  readonly frames: number;
  readonly bytes: number;
}

function add({ name, frames, bytes }: Frames, run: () => unknown): void {
  works.push({ what: name, unit: 'frame', count: frames, bytes: Math.round(bytes / frames), run });
}

const small = chunksOf(update.repeat(10_000));
add({ name: 'decode, 205-byte frames in 64 KB chunks', frames: 10_000, bytes: update.length * 10_000 }, () => decodeAll(small));
const medium = `${JSON.stringify({ text: 'é'.repeat(2500) })}\n`;
const mediumChunks = chunksOf(medium.repeat(1000));
add({ name: 'decode, 5 KB frames, not ASCII', frames: 1000, bytes: Buffer.byteLength(medium) * 1000 }, () => decodeAll(mediumChunks));
const large = chunksOf(`${JSON.stringify({ data: 'A'.repeat(12_000_000) })}\n`);
add({ name: 'decode, one 12 MB frame in 64 KB chunks', frames: 1, bytes: 12_000_000 }, () => decodeAll(large));
const dribble = Array.from(Buffer.from(update.repeat(100)), (byte) => Buffer.from([byte]));
add({ name: 'decode, one byte at a time', frames: 100, bytes: update.length * 100 }, () => decodeAll(dribble));

const prompt = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'session/prompt',
  params: { sessionId: 's', prompt: [{ type: 'text', text: 'hello' }] },
});
add({ name: 'JSON.parse and envelope of a prompt', frames: 1000, bytes: prompt.length * 1000 }, () => {
  for (let i = 0; i < 1000; i += 1) readEnvelope(JSON.parse(prompt));
});
const parsed: unknown = JSON.parse(prompt);
add({ name: 'envelope alone', frames: 1000, bytes: prompt.length * 1000 }, () => {
  for (let i = 0; i < 1000; i += 1) readEnvelope(parsed);
});
const image = JSON.stringify({ params: { prompt: [{ type: 'image', data: 'A'.repeat(12_000_000) }] } });
add({ name: 'nesting check of a 12 MB image prompt', frames: 1, bytes: image.length }, () => isNestedDeeperThan(image, 1000));
const list = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ i, list: [i] })));
add({ name: 'nesting check of dense JSON', frames: 1, bytes: list.length }, () => isNestedDeeperThan(list, 1000));

const writer = new FrameWriter(sink(), { stalledReaderMs: 60_000, onBroken: () => {} });
let written = 0;
const onWritten = (): void => {
  written += 1;
};
add({ name: 'writer, one frame a write, 1,000 a turn', frames: 1000, bytes: update.length * 1000 }, async () => {
  for (let i = 0; i < 1000; i += 1) writer.write(update, onWritten);
  await writer.idle();
});
const batch = update.repeat(64);
add({ name: 'writer, batches of 64 frames, 20 a turn', frames: 64 * 20, bytes: batch.length * 20 }, async () => {
  for (let i = 0; i < 20; i += 1) writer.write(batch, onWritten);
  await writer.idle();
});
add({ name: 'writer, one batch a turn', frames: 64, bytes: batch.length }, async () => {
  writer.write(batch, onWritten);
  await writer.idle();
});

await measureAll('framing', works);
if (written === 0) throw new Error('The writer called nobody back.');
