/**
 * Messages of the agent app on their way to the frame writer: made into lines, counted, and cleaned.
 *
 * Everything here reaches the writer within the call, so what the server hands to the writer after a response stands
 * behind that response on the wire.
 */
import type { AnyMessage, AnyResponse } from '@agentclientprotocol/sdk';
import type { LogLevel } from '../../shared/config.ts';
import type { ErrorFrame } from './envelope.ts';
import { errorFrame } from './envelope.ts';
import { cleanError } from './error-hygiene.ts';
import type { FrameWriter } from './frame-writer.ts';
import { namedSession, type RequestLedger } from './request-ledger.ts';

/** How much a note matters to whoever reads stderr. */
export type NoteLevel = Exclude<LogLevel, 'silent'>;

export interface OutboxOptions {
  readonly writer: FrameWriter;
  readonly ledger: RequestLedger;
  readonly onNote: (level: NoteLevel, text: string) => void;
  /** After the message was queued to the writer. */
  readonly onOutgoing: (message: AnyMessage) => void;
  /** After bytes of this outbox were handed over to the operating system. */
  readonly onWritten: () => void;
  /** A request to the client could not be sent: `answer` settles it as if the client had said so. */
  readonly onUnsendable: (answer: AnyResponse) => void;
}

/** Counts what it sends until the client takes it; the order of calls is the order on the wire. */
export class Outbox {
  readonly #options: OutboxOptions;
  #unwritten = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Characters of this outbox that the client has not yet taken. */
  get unwritten(): number {
    return this.#unwritten;
  }

  /** Sends a message of the agent app. Never throws: what cannot be made into JSON is answered as an error instead. */
  send(message: AnyMessage): void {
    const { ledger, onOutgoing, onNote } = this.#options;
    if (!('method' in message)) {
      if (!ledger.answer(message.id)) {
        onNote('debug', 'Dropped a second response to one request.');
        return;
      }
      onOutgoing(this.#sendResponse(message));
      return;
    }
    const line = toLine(message);
    if (line === undefined) {
      onNote('error', `Could not make ${message.method} into JSON; it was not sent.`);
      if ('id' in message) this.#options.onUnsendable(unsendable(message.id));
      return;
    }
    if ('id' in message) ledger.issue(message.id, namedSession(message.params));
    this.#write(line);
    onOutgoing(message);
  }

  /** Sends an error response of the transport itself. */
  refuse(answer: ErrorFrame): void {
    this.#write(`${JSON.stringify(answer)}\n`);
  }

  #sendResponse(response: AnyResponse): AnyResponse {
    let sent = response;
    if ('error' in response) {
      const { error, debug } = cleanError(response.error);
      if (debug !== undefined) {
        this.#options.onNote('error', 'A request failed with an error that its handler did not map.');
        this.#options.onNote('debug', `Unmapped error: ${debug}`);
      }
      sent = { jsonrpc: '2.0', id: response.id, error };
    }
    let line = isExpressible(sent) ? toLine(sent) : undefined;
    if (line === undefined) {
      this.#options.onNote('error', 'A result could not be made into JSON; the request was answered with an error.');
      sent = unsendable(response.id);
      line = `${JSON.stringify(sent)}\n`;
    }
    this.#write(line);
    return sent;
  }

  #write(line: string): void {
    this.#unwritten += line.length;
    this.#options.writer.write(line, () => {
      this.#unwritten -= line.length;
      this.#options.onWritten();
    });
  }
}

/** JSON leaves out functions, symbols and undefined, and a response without its result would settle nothing. */
function isExpressible(response: AnyResponse): boolean {
  return 'error' in response || !['undefined', 'function', 'symbol'].includes(typeof response.result);
}

function toLine(message: AnyMessage): string | undefined {
  try {
    return `${JSON.stringify(message)}\n`;
  } catch {
    // A cycle, a BigInt, a throwing toJSON, or a text beyond the engine's limit: the caller answers for it.
    return undefined;
  }
}

function unsendable(id: AnyResponse['id']): AnyResponse & ErrorFrame {
  return errorFrame(id, 'INTERNAL', 'The server could not express its message as JSON.');
}
