/**
 * One conversation of one client, as that client would have it: a file of JSON lines, played against the built server.
 *
 * A line with `jsonrpc` is a frame that the client sends as it stands; a request is waited for before the next line, a prompt is not.
 * The other lines are stage directions: `until` waits, `editor` is text that the person has typed and not saved, `//` is a remark, and
 * `answers` says how permission requests are answered: by `lines` of the file, or by the client itself (`approve-reads`).
 *
 * Names that stand for what only the run knows: `$CWD`, `$OTHER` (a second directory), `$NODE`, `$MCP` (the program of an MCP server),
 * `$SESSION` (the id that was last made or loaded), `$REQUEST` (the id of the agent's request that was waited for) and `$OPTION:kind` (its option).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { type Frame, type ServerOptions, ServerProcess } from '../support/server-process.ts';

export interface Until {
  /** The response to a request of the client. */
  readonly response?: string | number;
  /** An update, since the client last sent something, that has at least these members. */
  readonly update?: object;
  /** A request of the agent by this name that has no answer yet. */
  readonly request?: string;
}

interface Direction {
  readonly until?: Until;
  readonly editor?: { readonly path: string; readonly text: string };
  readonly answers?: 'lines' | 'approve-reads';
  readonly '//'?: string;
}

/** What a client sent, and how many frames of the agent it had by then. */
export interface SentFrame {
  readonly at: number;
  readonly frame: Frame;
}

export interface Stage {
  readonly cwd: string;
  readonly other: string;
  readonly mcp: string;
}

/** The client of a conversation: it remembers what it sent, and serves the files of its editor. */
export class ConversationClient extends ServerProcess {
  readonly sent: SentFrame[] = [];
  /** Text that is typed and not saved, by path; a write of the agent goes there and to the disk. */
  readonly editor = new Map<string, string>();
  answers: 'lines' | 'approve-reads' = 'lines';

  constructor(options: ServerOptions) {
    super({ ...options, onRequest: (frame) => this.answerTo(frame) });
  }

  override send(frame: Frame): void {
    this.sent.push({ at: this.frames.length, frame });
    super.send(frame);
  }

  answerTo({ method, params }: Frame): unknown {
    if (method === 'fs/read_text_file') {
      const { path, line = 1, limit } = params;
      const text = this.editor.get(path) ?? (existsSync(path) ? readFileSync(path, 'utf8') : '');
      const lines = text.split('\n').slice(line - 1);
      return { content: (typeof limit === 'number' ? lines.slice(0, limit) : lines).join('\n') };
    }
    if (method === 'fs/write_text_file') {
      if (this.editor.has(params.path)) this.editor.set(params.path, params.content);
      writeFileSync(params.path, params.content);
      return {};
    }
    return method === 'session/request_permission' && this.answers === 'approve-reads' ? approveReads(params) : undefined;
  }
}

/** As acpx with `--approve-reads` and no terminal: by kind alone, and what it may not allow it rejects. */
function approveReads({ toolCall, options }: any): unknown {
  const wanted = ['read', 'search'].includes(toolCall.kind) ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const option = wanted.map((kind) => options.find((one: any) => one.kind === kind)).find((one) => one !== undefined);
  return { outcome: option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.optionId } };
}

/** Plays the lines of a file to their end. @throws Error that names the line which did not come true */
export async function playConversation(client: ConversationClient, path: string, stage: Stage): Promise<void> {
  const player = new Player(client, stage);
  for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      await player.play(line);
    } catch (error) {
      throw new Error(`line ${index + 1} of ${path}: ${line.slice(0, 200)}`, { cause: error });
    }
  }
}

class Player {
  readonly #client: ConversationClient;
  readonly #stage: Stage;
  #session = '';
  #asked: Frame | undefined;
  #mark = 0;

  constructor(client: ConversationClient, stage: Stage) {
    this.#client = client;
    this.#stage = stage;
  }

  async play(line: string): Promise<void> {
    const step: Frame & Direction = JSON.parse(this.#filled(line));
    if (step.jsonrpc !== undefined) return await this.#send(step);
    if (step.editor !== undefined) this.#client.editor.set(step.editor.path, step.editor.text);
    if (step.answers !== undefined) this.#client.answers = step.answers;
    if (step.until !== undefined) await this.#wait(step.until);
  }

  #filled(line: string): string {
    const { cwd, other, mcp } = this.#stage;
    const names: Record<string, string> = { CWD: cwd, OTHER: other, MCP: mcp, NODE: process.execPath, SESSION: this.#session };
    return line
      .replace(/"\$REQUEST"/g, () => JSON.stringify(this.#asked?.id))
      .replace(/\$OPTION:(\w+)/g, (_all, kind) => this.#asked?.params.options.find((one: any) => one.kind === kind).optionId)
      .replace(/\$([A-Z]+)/g, (all, name) => names[name] ?? all);
  }

  async #send(frame: Frame): Promise<void> {
    this.#mark = this.#client.frames.length;
    const { method, id } = frame;
    const isRequest = method !== undefined && id !== undefined;
    const response = isRequest ? this.#client.next((one) => one.method === undefined && one.id === id, `the response to ${id}`) : undefined;
    this.#client.send(frame);
    if (response === undefined || method === 'session/prompt') return;
    const { result } = await response;
    const sessionId = result?.sessionId ?? (method === 'session/load' && result !== undefined ? frame.params.sessionId : undefined);
    if (sessionId !== undefined) this.#session = sessionId;
  }

  async #wait({ response, update, request }: Until): Promise<void> {
    const client = this.#client;
    if (response !== undefined) await client.response(response);
    if (update !== undefined) {
      await client.waitFor(
        (frame) => client.frames.indexOf(frame, this.#mark) !== -1 && hasMembers(frame.params?.update, update),
        'the update',
      );
    }
    if (request === undefined) return;
    const answered = new Set(client.sent.flatMap(({ frame }) => (frame.method === undefined ? [frame.id] : [])));
    this.#asked = await client.waitFor((frame) => frame.method === request && !answered.has(frame.id), request);
  }
}

function hasMembers(value: any, expected: any): boolean {
  if (typeof expected !== 'object' || expected === null) return isDeepStrictEqual(value, expected);
  return typeof value === 'object' && value !== null && Object.keys(expected).every((name) => hasMembers(value[name], expected[name]));
}
