/** Asks on a terminal: for a line that is not shown while it is typed, or for a yes. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

export interface TerminalInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
}

/**
 * One line, without its end. Typed and pasted text can be corrected as on any command line, and nothing of it is echoed.
 *
 * @returns undefined when the person gave up: Ctrl-C, Ctrl-D, or the end of the input
 */
export async function askHidden(question: string, input: TerminalInput, say: (text: string) => void): Promise<string | undefined> {
  const answer = readLine(input, new Writable({ write: (_chunk, _encoding, done) => done() }));
  // The terminal echoes nothing from here on: only now may the person be asked.
  say(question);
  await answer;
  say('\n');
  return await answer;
}

/** Whether the answer begins with a y. */
export async function askYes(question: string, input: TerminalInput, say: (text: string) => void): Promise<boolean> {
  say(question);
  const shown = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      say(chunk.toString());
      done();
    },
  });
  return /^y/i.test((await readLine(input, shown)) ?? '');
}

async function readLine(input: TerminalInput, output: Writable): Promise<string | undefined> {
  const lines = createInterface({ input, output, terminal: true, historySize: 0 });
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(undefined));
      lines.once('SIGINT', () => resolve(undefined));
    });
  } finally {
    lines.close();
  }
}
