/**
 * Makes the log of a long session: turns that read, think and answer, with summaries where the window would have filled, as a
 * session of any length has them. Each turn carries its number, so that whoever reads it back can tell what is missing.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { EventInput } from '../../src/shared/events.ts';
import { sealLine } from '../../src/shared/log/line-seal.ts';
import type { SessionPaths } from '../../src/shared/log/session-paths.ts';

export interface LargeLog {
  readonly bytes: number;
  readonly events: number;
  readonly turns: number;
}

/** Bytes of a result, and of all text between two summaries. */
const resultBytes = 6000;
const bytesPerSummary = 2 * 1024 * 1024;
const stepsPerTurn = 3;
const chunksPerStep = 8;
const words = 'the quick brown fox jumps over the lazy dog and "quotes" \\ and ünïcödé 🦊 while a file is read\n';
const resultText = words.repeat(Math.ceil(resultBytes / words.length));
const usage = { inputTokens: 900, outputTokens: 120, cacheReadTokens: 4000, reasoningTokens: 30 };

/** Adds whole turns to a log that has its header, until it has at least `bytes`. */
export function growLog(paths: SessionPaths, bytes: number): LargeLog {
  const fd = openSync(paths.log, 'a');
  const writer = new LogFileWriter(fd);
  try {
    writer.add({ type: 'thread/attached', data: { epoch: 1, threadId: 1, isolation: 'dedicated', pid: 1, sharedWith: 0 } });
    let turn = 0;
    let sinceSummary = 0;
    while (writer.bytes < bytes) {
      turn += 1;
      const before = writer.bytes;
      for (const event of turnEvents(turn)) writer.add(event);
      sinceSummary += writer.bytes - before;
      if (sinceSummary < bytesPerSummary) continue;
      sinceSummary = 0;
      writer.add({ type: 'history/compacted', data: { throughSeq: writer.events - 1, summary: `Everything up to turn ${turn}.` } });
    }
    writer.flush();
    return { bytes: writer.bytes, events: writer.events, turns: turn };
  } finally {
    closeSync(fd);
  }
}

/** What the client is shown of a turn: its prompt, and the last words of the answer. */
export function turnMarks(turn: number): { readonly prompt: string; readonly answer: string } {
  return { prompt: `prompt number ${turn}.`, answer: `answer number ${turn}.` };
}

/** Tool cards of a turn that the client is shown. */
export const cardsPerTurn = stepsPerTurn - 1;

function* turnEvents(turn: number): Generator<EventInput> {
  const { prompt, answer } = turnMarks(turn);
  yield { type: 'turn/start', data: { turn } };
  yield { type: 'user/message', data: { turn, messageId: `u${turn}`, source: 'prompt', content: [{ type: 'text', text: prompt }] } };
  if (turn === 1)
    yield {
      type: 'request/header',
      data: { provider: 'scripted', model: 'scripted', system: words, tools: ['read'], toolsHash: '0'.repeat(16) },
    };
  for (let step = 1; step <= stepsPerTurn; step += 1) yield* stepEvents(turn, step, step === stepsPerTurn ? answer : '');
  yield {
    type: 'turn/end',
    data: { turn, reason: { kind: 'completed' }, usage: { ...usage, steps: stepsPerTurn, toolCalls: cardsPerTurn, elapsedMs: 1000 } },
  };
}

function* stepEvents(turn: number, step: number, last: string): Generator<EventInput> {
  const messageId = `m${turn}-${step}`;
  yield { type: 'step/start', data: { turn, step } };
  yield { type: 'assistant/chunk', data: { turn, step, messageId: `${messageId}r`, kind: 'reasoning', text: words } };
  for (let chunk = 1; chunk < chunksPerStep; chunk += 1)
    yield { type: 'assistant/chunk', data: { turn, step, messageId, kind: 'text', text: words } };
  if (last !== '') yield { type: 'assistant/chunk', data: { turn, step, messageId, kind: 'text', text: last } };
  const callId = `call-${turn}-${step}`;
  const call = { callId, name: 'read', arguments: '{"file_path":"src/a.ts"}' };
  yield {
    type: 'assistant/message',
    data: {
      turn,
      step,
      messageId,
      text: words.repeat(chunksPerStep - 1) + last,
      reasoning: words,
      toolCalls: last === '' ? [call] : [],
      finish: last === '' ? 'tool-calls' : 'stop',
      usage,
    },
  };
  if (last === '') {
    yield { type: 'tool/call', data: { turn, step, ...call } };
    yield { type: 'tool/start', data: { turn, step, callId } };
    yield { type: 'tool/result', data: { turn, step, callId, text: resultText, isError: false } };
  }
  yield { type: 'step/end', data: { turn, step } };
}

/** Adds sealed lines to a log that has its header, with the numbers and times of a session that writes one a millisecond. */
export class LogFileWriter {
  events = 0;
  bytes = 0;
  readonly #fd: number;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  add(event: EventInput): void {
    const line = sealLine(JSON.stringify({ type: event.type, seq: this.events, time: 1_767_323_045_678 + this.events, data: event.data }));
    this.events += 1;
    this.bytes += line.length;
    this.#held.push(line);
    this.#heldBytes += line.length;
    if (this.#heldBytes > 1024 * 1024) this.flush();
  }

  flush(): void {
    const bytes = Buffer.concat(this.#held);
    for (let written = 0; written < bytes.length; ) written += writeSync(this.#fd, bytes, written);
    this.#held = [];
    this.#heldBytes = 0;
  }
}
