/**
 * A client that reads a server's stdout without keeping it: counts what a load shows, and checks that nothing of it is missing
 * or out of order. For logs that are larger than a test's memory should be.
 */
import type { Readable } from 'node:stream';
import { turnMarks } from './large-log.ts';

const lineFeed = 10;

export class LoadReader {
  /** Updates of the watched session. */
  updates = 0;
  bytes = 0;
  /** Turns whose prompt and answer were both seen, in their order. */
  turns = 0;
  cards = 0;
  /** The first thing that was not as it should be. */
  fault: string | undefined;
  readonly #sessionId: string;
  readonly #onOther: (frame: any) => void;
  #promptSeen = false;
  #held: Buffer[] = [];

  /** @param onOther gets every frame that is no update of the watched session */
  constructor(sessionId: string, onOther: (frame: any) => void) {
    this.#sessionId = sessionId;
    this.#onOther = onOther;
  }

  read(stdout: Readable): void {
    stdout.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  #take(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const piece = chunk.subarray(start, end);
      this.#line(this.#held.length === 0 ? piece : Buffer.concat([...this.#held, piece]));
      this.#held = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#held.push(Buffer.from(chunk.subarray(start)));
  }

  #line(line: Buffer): void {
    // Parsing every one of a million frames would make this client the slow reader.
    if (!line.includes(this.#sessionId) || !line.includes('"session/update"')) return this.#onOther(JSON.parse(line.toString()));
    this.updates += 1;
    this.bytes += line.length + 1;
    if (line.includes('"sessionUpdate":"tool_call"')) this.cards += 1;
    else if (line.includes('"user_message_chunk"')) this.#expect(line, turnMarks(this.turns + 1).prompt, true);
    else if (line.includes('answer number ')) this.#expect(line, turnMarks(this.turns + 1).answer, false);
  }

  #expect(line: Buffer, mark: string, isPrompt: boolean): void {
    if (this.fault !== undefined) return;
    if (!line.includes(mark) || this.#promptSeen === isPrompt) this.fault = `expected "${mark}": ${line.toString().slice(0, 300)}`;
    this.#promptSeen = isPrompt;
    if (!isPrompt) this.turns += 1;
  }
}
