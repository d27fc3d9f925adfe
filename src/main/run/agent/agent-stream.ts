/**
 * The agent's stdin and stdout as the SDK's stream of messages.
 *
 * Reads only when it is asked for more, so that a flood stays in the pipe. Lines that are no JSON-RPC are skipped: agents and their launchers print
 * there, and the SDK would answer each. Session updates go to `onUpdate` and not through the SDK, which checks each twice and prints those
 * that it does not know; what else nobody asked for is dropped.
 */
import type { Readable, Writable } from 'node:stream';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { FrameDecoder } from '../../../shared/framing/frame-decoder.ts';

const maxLineBytes = 64 * 1024 * 1024;

/** The params of a `session/update`, not checked. */
export type RawUpdate = { readonly sessionId: string; readonly update: Readonly<Record<string, unknown>> };

export interface AgentStreamHooks {
  /** Called in order, before whatever the agent sent behind it is handed on. Must not throw. */
  readonly onUpdate: (update: RawUpdate) => void;
}

export function agentStream(input: Readable, output: Writable, hooks: AgentStreamHooks): Stream {
  const messages = readMessages(input, hooks);
  return {
    readable: new ReadableStream<AnyMessage>(
      {
        pull: async (controller) => {
          const next = await messages.next();
          if (next.done === true) controller.close();
          else controller.enqueue(next.value);
        },
        cancel: () => void input.destroy(),
      },
      { highWaterMark: 0 },
    ),
    writable: new WritableStream<AnyMessage>({
      write: async (message) => {
        await new Promise<void>((resolve, reject) => {
          output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
        });
      },
    }),
  };
}

async function* readMessages(input: Readable, { onUpdate }: AgentStreamHooks): AsyncGenerator<AnyMessage, void> {
  let ready: AnyMessage[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: maxLineBytes }, (frame) => {
    const message = 'line' in frame ? parse(frame.line) : undefined;
    if (message === undefined) return;
    const update = asUpdate(message);
    if (update !== undefined) ready.push({ jsonrpc: '2.0', method: updateMethod, params: update });
    else if ('id' in message || message['method'] === '$/cancel_request') ready.push(message as unknown as AnyMessage);
  });
  try {
    for await (const chunk of input) {
      decoder.push(chunk as Buffer);
      const batch = ready;
      ready = [];
      yield* deliver(batch, onUpdate);
    }
  } catch {
    // A broken pipe is the end of the agent, as its end is.
  }
  decoder.end();
  yield* deliver(ready, onUpdate);
}

const updateMethod = 'session/update';

/** Updates are given out when it is their turn among the messages: an answer must not overtake those before it, nor they it. */
function* deliver(batch: readonly AnyMessage[], onUpdate: (update: RawUpdate) => void): Generator<AnyMessage, void> {
  for (const message of batch) {
    if ('method' in message && message.method === updateMethod) onUpdate(message.params as RawUpdate);
    else yield message;
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.includes('"jsonrpc"')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const message = value as Record<string, unknown>;
    const isMessage = typeof message['method'] === 'string' || ('id' in message && ('result' in message || 'error' in message));
    return isMessage ? message : undefined;
  } catch {
    // Noise that looks like a message.
    return undefined;
  }
}

function asUpdate({ id, method, params }: Record<string, unknown>): RawUpdate | undefined {
  if (id !== undefined || method !== updateMethod || typeof params !== 'object' || params === null) return undefined;
  const { sessionId, update } = params as Record<string, unknown>;
  const isUpdate = typeof sessionId === 'string' && typeof update === 'object' && update !== null;
  return isUpdate ? { sessionId, update: update as RawUpdate['update'] } : undefined;
}
