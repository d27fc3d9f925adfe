/**
 * Picks a window of lines out of a stream of bytes, in memory that does not grow with the file.
 *
 * Lines are split on bytes, never on decoded chunks, so a character cut by a chunk border stays whole.
 */
const lineFeed = 0x0a;

export interface WindowLimits {
  /** First line wanted, from 1. */
  readonly firstLine: number;
  readonly maxLines: number;
  /** Longer lines are cut, with a mark. */
  readonly maxLineChars: number;
  /** Of the numbered lines together, in UTF-8. The first line is given even when it alone is over. */
  readonly maxBytes: number;
}

export class LineWindow {
  readonly #limits: WindowLimits;
  readonly #keepLineBytes: number;
  readonly #lines: string[] = [];
  #bytes = 0;
  #full = false;
  #linesEnded = 0;
  /** The line being read: its kept bytes, and whether it has any byte or more than were kept. */
  #pending: Buffer[] = [];
  #pendingKept = 0;
  #pendingTotal = 0;

  constructor(limits: WindowLimits) {
    this.#limits = limits;
    // A character takes at most 4 bytes; 8 more tell a cut line from one that just fits, CR included.
    this.#keepLineBytes = limits.maxLineChars * 4 + 8;
  }

  /** True once no later line can enter the window. */
  get full(): boolean {
    return this.#full;
  }

  /** Numbered lines: `12<TAB>text`. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Lines seen so far, the last one also when no newline ends it (after {@link end}). */
  get linesSeen(): number {
    return this.#linesEnded;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, start)) {
      this.#keep(chunk, start, at);
      this.#endLine();
      start = at + 1;
    }
    this.#keep(chunk, start, chunk.length);
  }

  /** Says that no more bytes come. */
  end(): void {
    if (this.#pendingTotal > 0) {
      this.#endLine();
    }
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    this.#pendingTotal += end - start;
    if (this.#full || this.#linesEnded + 1 < this.#limits.firstLine) {
      return;
    }
    const take = Math.min(end - start, this.#keepLineBytes - this.#pendingKept);
    if (take > 0) {
      // Copied: the chunk's memory is used again for the next read.
      this.#pending.push(Buffer.from(chunk.subarray(start, start + take)));
      this.#pendingKept += take;
    }
  }

  #endLine(): void {
    this.#linesEnded += 1;
    if (!this.#full && this.#linesEnded >= this.#limits.firstLine) {
      this.#add(this.#linesEnded, this.#shownLine());
    }
    this.#pending = [];
    this.#pendingKept = 0;
    this.#pendingTotal = 0;
  }

  #shownLine(): string {
    const cutBytes = this.#pendingTotal > this.#pendingKept;
    let text = Buffer.concat(this.#pending).toString('utf8');
    if (!cutBytes && text.endsWith('\r')) {
      text = text.slice(0, -1);
    }
    if (this.#linesEnded === 1 && text.startsWith('\uFEFF')) {
      text = text.slice(1);
    }
    if (text.length <= this.#limits.maxLineChars) {
      return text;
    }
    let end = this.#limits.maxLineChars;
    // Not between the halves of a surrogate pair.
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) {
      end -= 1;
    }
    return `${text.slice(0, end)}… [line cut after ${end} characters]`;
  }

  #add(number: number, text: string): void {
    const line = `${number}\t${text}`;
    const bytes = Buffer.byteLength(line) + 1;
    if (this.#lines.length > 0 && this.#bytes + bytes > this.#limits.maxBytes) {
      this.#full = true;
      return;
    }
    this.#lines.push(line);
    this.#bytes += bytes;
    this.#full = this.#lines.length >= this.#limits.maxLines || this.#bytes >= this.#limits.maxBytes;
  }
}
