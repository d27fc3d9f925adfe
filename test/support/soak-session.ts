/**
 * One session's part of a soak: it is asked things, closed, loaded and replaced by a new one every so many turns, so that what a session
 * holds comes to a level. Whatever is not answered is told with what the session did last.
 */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Journal } from './soak-journal.ts';
import type { Answer, SoakServer } from './soak-server.ts';

/** `watched` sessions are left alone and timed; threads of `killed` ones are ended; `mixed` ones do everything. */
export type Kind = 'watched' | 'killed' | 'mixed';

export interface SoakSessionParts {
  readonly server: SoakServer;
  readonly kind: Kind;
  readonly dir: string;
  readonly journal: Journal;
  /** In [0, 1). */
  readonly random: () => number;
  readonly count: (name: string) => void;
  /** The longest pause between two prompts, in milliseconds. */
  readonly pauseMs: number;
  readonly isOver: () => boolean;
}

export class SoakSession {
  #doomed: 'throw' | 'exit' | undefined;
  #wake: () => void = () => undefined;
  readonly #parts: SoakSessionParts;
  readonly #cwd: string;
  #id = '';
  #turnsLeft = 0;

  constructor(parts: SoakSessionParts) {
    this.#parts = parts;
    this.#cwd = mkdtempSync(join(parts.dir, 'work-'));
    writeFileSync(join(this.#cwd, 'notes.txt'), 'one line\n'.repeat(200));
  }

  get kind(): Kind {
    return this.#parts.kind;
  }

  /** Whether its thread can be ended yet again. */
  get isDoomed(): boolean {
    return this.#doomed !== undefined;
  }

  /** Its next prompt ends its thread, and comes at once. */
  doom(how: 'throw' | 'exit'): void {
    this.#doomed = how;
    this.#wake();
  }

  /** Until the soak is over. Never rejects: what went wrong is a complaint. */
  async run(): Promise<void> {
    const { journal, server, isOver } = this.#parts;
    try {
      await this.#open();
      while (!isOver() || this.isDoomed) await this.#turn();
      await this.#close();
    } catch (error) {
      const status = await server.status();
      journal.complain(`${error instanceof Error ? error.message : String(error)}\n    _status: ${status}`, this.#id);
    }
  }

  async #turn(): Promise<void> {
    const { kind, random, pauseMs, server } = this.#parts;
    const roll = random();
    const text = this.#text();
    this.#note(`prompt ${text.slice(0, 60)}`);
    const answer = server.request('session/prompt', { sessionId: this.#id, prompt: [{ type: 'text', text }] });
    if (kind === 'mixed' && roll < 0.08) {
      await delay(random() * 100);
      this.#note('cancel');
      server.notify('session/cancel', { sessionId: this.#id });
    }
    const how = word(await answer);
    this.#note(how);
    this.#parts.count(how);
    this.#turnsLeft -= 1;
    if (kind === 'mixed' && roll > 0.95) await this.#closeAndLoad();
    // A session that has lost three threads within a minute is put away.
    if (how === 'SESSION_FAILED' || this.#turnsLeft <= 0) await this.#replace();
    await this.#pause(200 + random() * (kind === 'mixed' ? pauseMs : 800));
  }

  async #pause(ms: number): Promise<void> {
    if (this.isDoomed) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await delay(ms, undefined, { signal: woken.signal }).catch(() => undefined);
  }

  #text(): string {
    const { kind } = this.#parts;
    if (kind === 'watched') return '{"tokens":20,"delayMs":50,"stamp":true}';
    const doomed = this.#doomed;
    this.#doomed = undefined;
    if (doomed === undefined) return this.#prompt();
    this.#parts.count('threads killed');
    return `[!${doomed} 30] {"tokens":200,"delayMs":5}`;
  }

  #prompt(): string {
    const { random } = this.#parts;
    const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
    const bash = (command: string) => call('bash', { command, description: 'a command' });
    const path = join(this.#cwd, 'notes.txt');
    const tools = [
      [call('read', { file_path: path }), call('grep', { pattern: 'line', path: this.#cwd })],
      [bash('echo hello; sleep 0.2'), call('read', { file_path: path })],
      [bash('seq 2000')],
      [call('write', { file_path: join(this.#cwd, `out-${Math.floor(random() * 5)}.txt`), content: 'x'.repeat(2000) })],
      [bash('sleep 2 & sleep 0.1')],
    ][Math.floor(random() * 7)];
    return JSON.stringify(tools === undefined ? { tokens: 30, delayMs: 5 } : { plans: [{ tools }, { tokens: 5, delayMs: 5 }] });
  }

  async #open(): Promise<void> {
    const { server, kind, random } = this.#parts;
    const { result, error } = await server.request('session/new', { cwd: this.#cwd, mcpServers: [] });
    if (result === undefined) throw new Error(`session/new: ${JSON.stringify(error)}`);
    this.#id = result.sessionId as string;
    this.#turnsLeft = 8 + Math.floor(random() * 16);
    if (kind === 'watched') server.watched.add(this.#id);
    this.#note(`opened in ${server.name}, ${kind}`);
  }

  async #replace(): Promise<void> {
    await this.#close();
    this.#parts.count('sessions replaced');
    await this.#open();
  }

  /** Half of them are deleted; the logs of the others are read at the end. */
  async #close(): Promise<void> {
    const { server, random } = this.#parts;
    server.watched.delete(this.#id);
    await this.#must('session/close', { sessionId: this.#id });
    if (random() < 0.5) await this.#must('session/delete', { sessionId: this.#id });
  }

  async #closeAndLoad(): Promise<void> {
    await this.#must('session/close', { sessionId: this.#id });
    await this.#must('session/load', { sessionId: this.#id, cwd: this.#cwd, mcpServers: [] });
    this.#parts.count('loaded');
  }

  async #must(method: string, params: object): Promise<void> {
    this.#note(method);
    const { error } = await this.#parts.server.request(method, params);
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
  }

  #note(what: string): void {
    this.#parts.journal.note(this.#id, what);
  }
}

function word({ result, error }: Answer): string {
  return result?.stopReason ?? error?.data?.code ?? String(error?.code);
}
