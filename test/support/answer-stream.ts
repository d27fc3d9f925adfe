/**
 * Streams one planned answer into a response, at its pace, as fast as the socket takes it, or broken in the way that was asked for.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { closingData, eventText, httpChunk, openingData, chunkJson, tokenFrame, toolData } from './answer-frames.ts';
import type { AnswerPlan } from './answer-plan.ts';
import { monotonicMs } from './monotonic.ts';
import type { Periodic, TickWheel } from './tick-wheel.ts';

/** Bytes handed to a socket at once when there is no pace. */
const fastWriteBytes = 16 * 1024;

export class AnswerStream implements Periodic {
  readonly periodMs: number;
  readonly #plan: AnswerPlan;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #total: number;
  readonly #isReleased: () => boolean;
  readonly #onToken: () => void;
  /** When the request was read. */
  readonly #readAt = monotonicMs();
  #sent = 0;

  constructor(plan: AnswerPlan, response: ServerResponse, onToken: () => void, isReleased: () => boolean = () => false) {
    this.#plan = plan;
    this.#response = response;
    if (response.socket === null) throw new Error('the response has no socket');
    this.#socket = response.socket;
    this.periodMs = plan.delayMs ?? 0;
    this.#total = plan.untilReleased === true ? Number.POSITIVE_INFINITY : (plan.text?.length ?? plan.tokens ?? 0);
    this.#isReleased = isReleased;
    this.#onToken = onToken;
  }

  /** Sends the head and begins. */
  start(wheel: TickWheel): void {
    const { fault, comments } = this.#plan;
    this.#response.writeHead(200, { 'content-type': this.#plan.contentType ?? 'text/event-stream', 'cache-control': 'no-cache' });
    this.#response.flushHeaders();
    if (fault?.kind === 'stall-before') return;
    if (comments === undefined) this.#begin(wheel);
    else this.#comment(comments.everyMs, comments.count, () => this.#begin(wheel));
  }

  /** One period: one token, or the end. */
  fire(): boolean {
    if (this.#socket.destroyed) return false;
    if (this.#broke()) return false;
    const isOver = this.#plan.untilReleased === true && this.#isReleased();
    if (this.#sent < this.#total && !isOver) {
      this.#socket.write(this.#nextToken());
      return true;
    }
    this.#close();
    return false;
  }

  #begin(wheel: TickWheel): void {
    if (this.#plan.rawBody !== undefined || this.#plan.raw !== undefined) {
      this.#writeRaw();
      return;
    }
    this.#write(openingData(this.#plan));
    if (this.#broke()) return;
    if (this.periodMs > 0) wheel.add(this);
    else this.#rush();
  }

  /** As fast as the socket takes it, in turns with the other streams. */
  #rush(): void {
    while (!this.#socket.destroyed) {
      const pieces: Buffer[] = [];
      let size = 0;
      let broken = false;
      while (this.#sent < this.#total && size < fastWriteBytes && !broken) {
        const frame = this.#nextToken();
        pieces.push(frame);
        size += frame.length;
        broken = this.#breaksNow();
      }
      const room = pieces.length === 0 || this.#socket.write(Buffer.concat(pieces));
      if (this.#broke()) return;
      if (this.#sent >= this.#total) {
        this.#close();
        return;
      }
      if (!room) {
        this.#socket.once('drain', () => this.#rush());
        return;
      }
    }
  }

  #nextToken(): Buffer {
    const index = this.#sent;
    this.#sent += 1;
    this.#onToken();
    const text = this.#plan.text?.[index];
    if (text !== undefined) return httpChunk(this.#event(chunkJson({ content: text })));
    if (this.#plan.stamp !== undefined && this.#plan.stamp !== false)
      return httpChunk(this.#event(chunkJson({ content: this.#stamp(index) })));
    return this.#plan.crlf === true ? httpChunk(this.#event(chunkJson({ content: `tok${index} ` }))) : tokenFrame(index);
  }

  #stamp(index: number): string {
    const now = monotonicMs();
    // Without a pace only the first one is due at a time.
    const due = index === 0 || this.periodMs > 0 ? this.#readAt + (index + 1) * this.periodMs : now;
    const text = this.#plan.stamp === 'due' ? `${due.toFixed(3)}/${now.toFixed(3)}` : String(now);
    return `${text.padEnd((this.#plan.padTo ?? 0) - 1, '/')} `;
  }

  #event(data: string): string {
    return eventText(data, this.#plan.crlf);
  }

  #breaksNow(): boolean {
    const { fault } = this.#plan;
    return fault !== undefined && fault.kind !== 'cut-tools' && 'after' in fault && this.#sent >= fault.after;
  }

  #broke(): boolean {
    const { fault } = this.#plan;
    if (fault === undefined || !this.#breaksNow()) return false;
    if (fault.kind === 'cut') this.#socket.write('', () => this.#socket.destroy());
    else if (fault.kind === 'end-early') this.#response.end();
    else if (fault.kind === 'stall-mid' && fault.keepAliveMs !== undefined) this.#comment(fault.keepAliveMs, Infinity, () => undefined);
    return true;
  }

  #comment(everyMs: number, count: number, then: () => void): void {
    let left = count;
    const timer = setInterval(() => {
      if (left > 0 && !this.#socket.destroyed) this.#socket.write(httpChunk(': keep-alive\n\n'));
      left -= 1;
      if (left > 0 && !this.#socket.destroyed) return;
      clearInterval(timer);
      if (!this.#socket.destroyed) then();
    }, everyMs);
  }

  #write(lines: readonly string[]): void {
    if (lines.length > 0) this.#socket.write(httpChunk(lines.map((line) => this.#event(line)).join('')));
  }

  #close(): void {
    const pieces = toolData(this.#plan);
    const { toolDelayMs } = this.#plan;
    if (toolDelayMs !== undefined && pieces.length > 0) this.#paceTools(pieces, toolDelayMs);
    else {
      this.#write(pieces);
      this.#end();
    }
  }

  #paceTools(pieces: readonly string[], delayMs: number): void {
    const { fault } = this.#plan;
    let sent = 0;
    const timer = setInterval(() => {
      const cut = fault?.kind === 'cut-tools' && sent >= fault.after;
      if (cut) this.#socket.destroy();
      else if (sent < pieces.length) this.#write(pieces.slice(sent, sent + 1));
      else if (!this.#socket.destroyed) this.#end();
      sent += 1;
      if (this.#socket.destroyed || sent > pieces.length) clearInterval(timer);
    }, delayMs);
  }

  #end(): void {
    this.#write(closingData(this.#plan, this.#sent + (this.#plan.reasoning ?? 0)));
    if (this.#plan.fault?.kind !== 'no-done') this.#write(['[DONE]']);
    this.#response.end();
  }

  #writeRaw(): void {
    const body = Buffer.from(
      this.#plan.rawBody ?? (this.#plan.raw ?? []).map((line) => this.#event(line)).join(''),
      this.#plan.rawEncoding ?? 'utf8',
    );
    const step = this.#plan.splitBytes ?? body.length;
    let at = 0;
    const next = (): void => {
      if (this.#socket.destroyed) return;
      if (at >= body.length) {
        this.#response.end();
        return;
      }
      const piece = body.subarray(at, at + step);
      at += step;
      // One write per turn of the loop, so that pieces arrive as they were cut.
      this.#socket.write(httpChunk(piece), () => setImmediate(next));
    };
    next();
  }
}
