/**
 * The server's output, line by line, at the price of looking at it: streamed text passes as the bytes it came in. Only whole
 * lines leave, so a process that dies in the middle of one leaves no half of it with the client.
 */
const LF = 0x0a;
const update = Buffer.from('{"jsonrpc":"2.0","method":"session/update",');
const toolCall = Buffer.from('"sessionUpdate":"tool_call');
const toolCallUpdate = Buffer.from('"sessionUpdate":"tool_call_update"');
const endings = [Buffer.from('"status":"completed"'), Buffer.from('"status":"failed"')];
/** Where an update says what it is: behind the session's id, which is a UUID. */
const headBytes = 256;

export interface ScannerSink {
  /** Whole lines that nobody needs to look at, LF included. The bytes may be kept. */
  readonly plain: (bytes: Buffer) => void;
  /** Any other line, without its LF. */
  readonly line: (line: string) => void;
}

export class OutputScanner {
  readonly #sink: ScannerSink;
  /** Of a line that has not ended yet. */
  #rest: Buffer[] = [];

  constructor(sink: ScannerSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    const last = chunk.lastIndexOf(LF);
    if (last === -1) {
      this.#rest.push(chunk);
      return;
    }
    const whole = this.#rest.length === 0 ? chunk.subarray(0, last + 1) : Buffer.concat([...this.#rest, chunk.subarray(0, last + 1)]);
    this.#rest = last + 1 === chunk.length ? [] : [chunk.subarray(last + 1)];
    this.#scan(whole);
  }

  #scan(whole: Buffer): void {
    let plainFrom = 0;
    for (let start = 0; start < whole.length; ) {
      const end = whole.indexOf(LF, start) + 1;
      if (!isPlain(whole, start, end)) {
        if (plainFrom < start) this.#sink.plain(whole.subarray(plainFrom, start));
        this.#sink.line(whole.toString('utf8', start, end - 1));
        plainFrom = end;
      }
      start = end;
    }
    if (plainFrom < whole.length) this.#sink.plain(whole.subarray(plainFrom));
  }
}

/** An update that opens or closes no card. Running output and other changes of an open card are not parsed either. */
function isPlain(bytes: Buffer, start: number, end: number): boolean {
  if (end - start <= update.length || bytes.compare(update, 0, update.length, start, start + update.length) !== 0) return false;
  const head = bytes.subarray(start + update.length, Math.min(end, start + headBytes));
  if (!head.includes(toolCall)) return true;
  if (!head.includes(toolCallUpdate)) return false;
  const line = bytes.subarray(start, end);
  return !endings.some((ending) => line.includes(ending));
}
