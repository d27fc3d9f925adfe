/**
 * The pipes of an MCP server as the transport that the SDK wants: one JSON-RPC message a line, in both directions.
 *
 * Stands in the place of the SDK's own, which starts the process itself and bounds nothing. Trusts nothing that comes:
 * noise is dropped, and a server that floods, or that reads nothing, is given up.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type DecodedFrame, FrameDecoder } from '../../../shared/framing/frame-decoder.ts';
import type { ProcessGroup } from '../process-group.ts';
import { StreamPump } from '../stream-pump.ts';
import { ByteAllowance } from '../subagents/byte-allowance.ts';
import { within } from '../within.ts';
import { isDeeperThan, maxMessageBytes, maxMessageDepth } from './message-limits.ts';

const maxUnreadBytes = 32 * 1024 * 1024;
const keptNoiseChars = 4096;
/** What a line costs beside its bytes, in bytes, and more when it is no message. */
const lineCost = 256;
const noiseCost = 1024;
/** A server that has ended shows it first by its pipes. */
const exitNoticeMs = 300;

export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #group: ProcessGroup;
  readonly #decoder = new FrameDecoder({ maxFrameBytes: maxMessageBytes }, (frame) => this.#take(frame));
  readonly #allowance = new ByteAllowance();
  #pump: StreamPump | undefined;
  #failure: string | undefined;
  #noise = '';
  #closed = false;

  constructor(group: ProcessGroup) {
    this.#group = group;
  }

  /** Why nothing more is read, when the server is to blame. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** The last line that was no message: often the reason why a server ended. */
  get noise(): string {
    return this.#noise;
  }

  async start(): Promise<void> {
    this.#pump = new StreamPump(this.#group.stdout, (chunk) => {
      this.#spend(chunk.length);
      if (!this.#closed) this.#decoder.push(chunk);
      return undefined;
    });
    void this.#pump.ended.then(() => this.#end());
    void this.#closeAfterExit();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#group;
    if (stdin === undefined || this.#closed) throw new Error('the server is gone');
    if (stdin.writableLength > maxUnreadBytes) this.fail('it reads nothing of what it is sent');
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    this.#end();
  }

  /** Reads no more, whoever still holds the other end. */
  fail(reason?: string): void {
    if (!this.#closed) this.#failure ??= reason;
    this.#end();
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pump?.destroy();
    this.onclose?.();
  }

  #spend(bytes: number): void {
    if (!this.#allowance.take(bytes)) this.fail('it floods its output');
  }

  #take(frame: DecodedFrame): void {
    if (this.#closed) return;
    if ('line' in frame) this.#takeLine(frame.line);
    else this.fail(`it sent a message of more than ${maxMessageBytes / 1024 / 1024} MB`);
  }

  #takeLine(line: string): void {
    this.#spend(lineCost);
    const message = parseMessage(line);
    if (message === undefined) {
      this.#spend(noiseCost);
      this.#noise = line.slice(0, keptNoiseChars);
    } else if (isDeeperThan(message, maxMessageDepth)) {
      this.fail(`it sent a message that is nested deeper than ${maxMessageDepth} levels`);
    } else {
      this.onmessage?.(message);
    }
  }

  /** As with subagents: who failed takes its connection along; who ended well may have left its work to a child of its own. */
  async #closeAfterExit(): Promise<void> {
    const { exitCode } = await this.#group.exited;
    if (exitCode === 0) await this.#group.gone;
    if (this.#pump !== undefined) await within(this.#pump.ended, exitNoticeMs, undefined);
    this.#end();
  }
}

function parseMessage(line: string): JSONRPCMessage | undefined {
  // A failed parse costs far more than this look.
  if (!/^\s*\{/.test(line)) return undefined;
  try {
    const value = JSON.parse(line) as { jsonrpc?: unknown };
    return value.jsonrpc === '2.0' ? (value as JSONRPCMessage) : undefined;
  } catch {
    // Not JSON: noise, which many programs print before they come to the point.
    return undefined;
  }
}
