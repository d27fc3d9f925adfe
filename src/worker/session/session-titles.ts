/**
 * Gives a session its title: behind its first turn the first line of the prompt, at once; then, where the settings want it,
 * what the model makes of that turn, whenever that comes.
 *
 * Titles are for people who look through a list of sessions, so only an editor's sessions get one of their own.
 */
import type { EventData, EventInput, LogEvent, TurnEndReason } from '../../shared/events.ts';
import type { TitleSource } from '../../shared/config.ts';
import { writeTitleFile } from '../../shared/log/title-file.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { TitleAnswer, TitledTurn } from '../agent/title-call.ts';
import type { TurnEnd } from '../agent/turn.ts';
import { TitleFinder } from './title-finder.ts';

export interface SessionTitlesParts {
  /** Logs an event and shows it. @throws ServerError LOG_WRITE_FAILED */
  readonly record: (event: EventInput) => LogEvent;
  /** Never rejects. */
  readonly askModel: (turn: TitledTurn, signal: AbortSignal) => Promise<TitleAnswer | undefined>;
  /** Charges the session for it. */
  readonly charge: (usage: SubagentUsage) => void;
}

export class SessionTitles {
  readonly #parts: SessionTitlesParts;
  readonly #source: TitleSource;
  readonly #sessionDir: string;
  readonly #finder = new TitleFinder();
  readonly #stop = new AbortController();
  #mayAsk: boolean;

  constructor(task: SessionTask, parts: SessionTitlesParts) {
    const { settings, audience, spillDir } = task;
    this.#parts = parts;
    this.#source = settings.profile === 'editor' && audience === undefined ? settings.titles : 'off';
    this.#sessionDir = spillDir;
    // The models of this process would answer the question as they answer everything: by a script.
    this.#mayAsk = this.#source === 'model' && settings.model.kind === 'openai-compatible';
  }

  /** Takes in one event of the log, live or replayed, in order. */
  observe(event: LogEvent): void {
    if (this.#source !== 'off') this.#finder.observe(event);
  }

  /** The stored log is read. It may be a copy of another one, or a title's file may be lost. */
  opened(): void {
    const { given, prompt } = this.#finder;
    if (given === undefined) return;
    this.#mayAsk = false;
    if (given !== prompt?.title || prompt.isLong) this.#keepForList(given);
  }

  /** What to show of a log that has no title. */
  get unlogged(): TitleFinder['unlogged'] {
    return this.#finder.unlogged;
  }

  /** To be called before the turn is answered: what comes of the prompt is shown before that, and nothing is waited for. */
  turnEnded({ reason, text }: Pick<TurnEnd, 'reason' | 'text'>): void {
    const { given, prompt } = this.#finder;
    if (prompt === undefined || this.#stop.signal.aborted) return;
    if (given === undefined && this.#give({ title: prompt.title, source: 'prompt' }) && prompt.isLong) this.#keepForList(prompt.title);
    if (!this.#mayAsk || !wentWell.has(reason.kind)) return;
    this.#mayAsk = false;
    // Behind the answer of the turn.
    setImmediate(() => void this.#ask({ prompt: prompt.text, answer: text }));
  }

  /** Takes the question back: nothing more is logged. */
  stop(): void {
    this.#stop.abort();
  }

  async #ask(turn: TitledTurn): Promise<void> {
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const answer = await this.#parts.askModel(turn, signal);
    const title = answer?.title ?? this.#finder.given;
    // Without usage and without a title there is nothing to say.
    if (signal.aborted || answer === undefined || title === undefined || Object.keys(answer).length === 0) return;
    const { usage } = answer;
    const logged = this.#give({
      title,
      source: answer.title === undefined ? 'prompt' : 'model',
      ...(usage === undefined ? {} : { usage }),
    });
    if (logged && usage !== undefined) this.#parts.charge(usage);
    if (logged && answer.title !== undefined) this.#keepForList(title);
  }

  /** Says whether it is in the log. */
  #give(data: EventData['session/title']): boolean {
    try {
      this.#parts.record({ type: 'session/title', data });
      return true;
    } catch {
      return false; // A log that takes nothing more is the next turn's to report.
    }
  }

  #keepForList(title: string): void {
    try {
      writeTitleFile(this.#sessionDir, title);
    } catch {
      // The list then shows what it finds in the log.
    }
  }
}

const wentWell: ReadonlySet<TurnEndReason['kind']> = new Set(['completed', 'max-tokens', 'max-turn-requests']);
