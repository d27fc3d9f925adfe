/**
 * What the main thread does between bytes and sessions, with nothing behind it: a frame to its handler and the answer back, and the
 * batches of a session thread to the writer.
 */
import { PassThrough, Writable } from 'node:stream';
import { MessageChannel } from 'node:worker_threads';
import { type AgentAppParts, createAgentApp } from '../../src/main/acp/agent-app.ts';
import { cancelledResult } from '../../src/main/sessions/pending-prompt.ts';
import { Completions } from '../../src/main/threads/completions.ts';
import { ThreadLane, type ThreadLaneParts } from '../../src/main/threads/thread-lane.ts';
import { createAgentStream } from '../../src/main/transport/agent-stream.ts';
import { FrameWriter } from '../../src/main/transport/frame-writer.ts';
import type { DataBatch } from '../../src/shared/thread-protocol.ts';
import { measureAll } from './measured.ts';

const requests = 200;
const batches = 200;
const framesPerBatch = 64;
const sessionId = '0198f1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b';

/** The real stream and agent app, in front of sessions that answer at once. */
class Edge {
  readonly #input = new PassThrough();
  readonly #writer: FrameWriter;
  #answers = 0;
  #wanted = Number.POSITIVE_INFINITY;
  #reached: () => void = () => undefined;
  #nextId = 0;
  #cancels = 0;
  #cancelled: () => void = () => undefined;

  constructor() {
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.#answers += 1;
        if (this.#answers >= this.#wanted) this.#reached();
        done();
      },
    });
    this.#writer = new FrameWriter(output, { stalledReaderMs: 60_000, onBroken: () => undefined });
    const stream = createAgentStream({
      input: this.#input,
      writer: this.#writer,
      maxFrameBytes: 1024 * 1024,
      onEnd: () => undefined,
      onNote: () => undefined,
    });
    createAgentApp(this.#parts()).connect(stream);
  }

  async initialize(): Promise<void> {
    await this.send(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} });
  }

  /** Sends `count` requests in one write; fulfils with the last answer. */
  async send(count: number, method: string, params: object): Promise<void> {
    const answered = new Promise<void>((resolve) => (this.#reached = resolve));
    this.#wanted = this.#answers + count;
    let text = '';
    for (let i = 0; i < count; i += 1) text += `${JSON.stringify({ jsonrpc: '2.0', id: (this.#nextId += 1), method, params })}\n`;
    this.#input.write(text);
    await answered;
  }

  /** Sends `count` cancels in one write; fulfils when the session has been told of the last. */
  async cancel(count: number): Promise<void> {
    this.#cancels = 0;
    const cancelled = new Promise<void>((resolve) => {
      this.#cancelled = () => this.#cancels === count && resolve();
    });
    this.#input.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } })}\n`.repeat(count));
    await cancelled;
  }

  #parts(): AgentAppParts {
    const session = {
      identity: { id: sessionId, profile: 'automation', client: { terminalOutput: false }, options: {} },
      settings: { model: { kind: 'scripted' }, prices: undefined },
      prompt: () => Promise.resolve(cancelledResult),
      cancel: () => {
        this.#cancels += 1;
        this.#cancelled();
      },
    };
    const sessions = { find: () => session, get: () => session, status: () => ({ isolation: 'shared' }) };
    const credentials = { access: undefined, keyVariable: 'KEY' };
    return {
      config: {
        agentName: 'bench',
        agentVersion: '0',
        profile: 'automation',
        isolation: 'shared',
        session: { model: { kind: 'scripted' } },
      },
      diagnostics: { log: () => undefined },
      credentials,
      launch: { command: 'node', args: [], env: {} },
      isSupervised: false,
      sessions: () => Promise.resolve(sessions),
      sessionsIfStarted: () => sessions,
      onInitialize: () => undefined,
      commands: { promptBegins: () => undefined },
    } as unknown as AgentAppParts;
  }
}

const frame = `${JSON.stringify({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'a few words ' } } },
})}\n`;

/** A lane whose thread is this one. */
class Lane {
  readonly #data = new MessageChannel();
  readonly #control = new MessageChannel();
  readonly #broker = new MessageChannel();
  readonly #lane: ThreadLane;
  #batch = 0;

  constructor() {
    const output = new Writable({ decodeStrings: false, write: (_chunk, _encoding, done) => done() });
    const writer = new FrameWriter(output, { stalledReaderMs: 60_000, onBroken: () => undefined });
    const ports = {
      data: this.#data.port2,
      control: this.#control.port2,
      broker: this.#broker.port2,
      heartbeat: new SharedArrayBuffer(12),
    };
    const services = (() => ({})) as unknown as ThreadLaneParts['services'];
    this.#lane = new ThreadLane(1, ports, { writer, completions: new Completions(), services });
  }

  async take(count: number): Promise<void> {
    const text = frame.repeat(framesPerBatch);
    for (let i = 0; i < count; i += 1) {
      const batch: DataBatch = { batch: (this.#batch += 1), text, bytes: text.length, frames: framesPerBatch, cards: [], completions: [] };
      this.#data.port1.postMessage(batch);
    }
    await this.#lane.batchTaken(this.#batch);
  }

  close(): void {
    this.#lane.close();
    for (const channel of [this.#data, this.#control, this.#broker]) channel.port1.close();
  }
}

const edge = new Edge();
await edge.initialize();
const lane = new Lane();
const prompt = { sessionId, prompt: [{ type: 'text', text: 'a few words of a prompt '.repeat(20) }] };
await measureAll('router', [
  { what: '_status to its handler and back', unit: 'request', count: requests, run: () => edge.send(requests, '_status', {}) },
  {
    what: 'session/prompt to its session and back',
    unit: 'request',
    count: requests,
    run: () => edge.send(requests, 'session/prompt', prompt),
  },
  { what: 'session/cancel to its session', unit: 'notification', count: requests, run: () => edge.cancel(requests) },
  {
    what: 'frames of a thread to the writer',
    unit: 'frame',
    count: batches * framesPerBatch,
    bytes: frame.length,
    run: () => lane.take(batches),
  },
]);
lane.close();
process.exit(0);
