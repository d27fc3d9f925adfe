/**
 * A terminal for tests: understands what a view drawn in place writes, and holds the screen that a person would see. Lines that
 * scroll off the top are kept, as a terminal's history does.
 */
import { Writable } from 'node:stream';

export class FakeTerminal extends Writable {
  readonly isTTY: boolean;
  columns: number;
  rows: number;
  writes = 0;
  text = '';
  cursorShown = true;
  /** Lines from the first one ever written. */
  readonly lines: string[] = [''];
  #row = 0;
  #column = 0;

  constructor({ columns = 80, rows = 24, isTTY = true }: { columns?: number; rows?: number; isTTY?: boolean } = {}) {
    super({ decodeStrings: false });
    this.columns = columns;
    this.rows = rows;
    this.isTTY = isTTY;
  }

  /** What stands on the screen, trailing blanks left out. */
  get screen(): string {
    return this.lines
      .map((line) => line.trimEnd())
      .join('\n')
      .trimEnd();
  }

  resize(columns: number, rows = this.rows): void {
    this.columns = columns;
    this.rows = rows;
    this.emit('resize');
  }

  override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    this.writes += 1;
    const text = chunk.toString();
    this.text += text;
    // oxlint-disable-next-line no-control-regex -- escape sequences are what a terminal reads
    for (const [piece, , parameter, final] of text.matchAll(/(\u001b\[([?\d;]*)([A-Za-z]))|[^]/gu)) {
      if (final === undefined) this.#put(piece);
      else this.#control(final, parameter ?? '');
    }
    done();
  }

  #put(char: string): void {
    if (char === '\n') {
      this.#row += 1;
      this.#column = 0;
    } else {
      const line = Array.from((this.lines[this.#row] ?? '').padEnd(this.#column));
      line[this.#column] = char;
      this.lines[this.#row] = line.join('');
      this.#column += 1;
    }
    while (this.lines.length <= this.#row) this.lines.push('');
  }

  #control(final: string, parameter: string): void {
    const count = Number(parameter) || 1;
    // Rows that have scrolled off can no longer be reached.
    const top = Math.max(0, this.lines.length - this.rows);
    if (final === 'A') this.#row = Math.max(top, this.#row - count);
    else if (final === 'B') this.#row = Math.min(this.lines.length - 1, this.#row + count);
    else if (final === 'G') this.#column = count - 1;
    else if (final === 'K') this.#erase(parameter);
    else if (parameter === '?25') this.cursorShown = final === 'h';
    else if (final !== 'm' && parameter !== '?2026') throw new Error(`a terminal would not know ${JSON.stringify(parameter + final)}`);
  }

  #erase(parameter: string): void {
    const line = this.lines[this.#row] ?? '';
    this.lines[this.#row] = parameter === '2' ? '' : Array.from(line).slice(0, this.#column).join('');
  }
}
