/**
 * What a run has done so far, in a few lines: for the card of its call and for whoever asks after a background run. Pure
 * but for what it has taken in; reads no clock.
 */
import type { TodoEntry } from '../../shared/events.ts';
import type { SubagentActivity, SubagentUsage } from '../../shared/subagent-protocol.ts';
import { titleLine } from '../display/title-line.ts';
import { usageLine } from './usage-line.ts';

const toolsShown = 8;
const planShown = 12;
const textShown = 800;
/** Kept, so that the shown end can begin at a line. */
const textKept = 4 * textShown;

type ToolActivity = Extract<SubagentActivity, { kind: 'tool' }>;

const marks: Readonly<Record<ToolActivity['status'], string>> = { pending: '·', in_progress: '▸', completed: '✓', failed: '✗' };
const planMarks: Readonly<Record<TodoEntry['status'], string>> = { pending: '[ ]', in_progress: '[~]', completed: '[x]' };

export class RunProgress {
  /** By the child's id for the call, in order of their last change. */
  readonly #tools = new Map<string, ToolActivity>();
  #toolsGone = 0;
  #plan: readonly TodoEntry[] = [];
  #images: string[] = [];
  #text = '';
  #usage: SubagentUsage | undefined;

  apply(activity: SubagentActivity): void {
    switch (activity.kind) {
      case 'text':
        this.#text = (this.#text + activity.text).slice(-textKept);
        return;
      case 'tool':
        this.#applyTool(activity);
        return;
      case 'plan':
        this.#plan = activity.entries;
        return;
      case 'image':
        this.#images = [...this.#images, `${activity.path} (${activity.mimeType}, ${activity.bytes} bytes)`].slice(-toolsShown);
        return;
      case 'usage':
        this.#usage = activity.usage;
        return;
    }
  }

  /** Markdown; empty as long as nothing has happened. */
  text(): string {
    const images = this.#images.map((image) => `- image: ${image}`).join('\n');
    const usage = this.#usage === undefined ? '' : usageLine(this.#usage);
    const parts = [this.#planLines(), this.#toolLines(), images, this.#textEnd(), usage];
    return parts.filter((part) => part !== '').join('\n\n');
  }

  /** Forgets what has ended, so that the next {@link text} tells only what came since; calls that still run stay. */
  forgetShown(): void {
    for (const [id, tool] of this.#tools) {
      if (tool.status === 'completed' || tool.status === 'failed') this.#tools.delete(id);
    }
    this.#toolsGone = 0;
    this.#plan = [];
    this.#images = [];
    this.#text = '';
    this.#usage = undefined;
  }

  #applyTool(activity: ToolActivity): void {
    this.#tools.delete(activity.childCallId);
    this.#tools.set(activity.childCallId, activity);
    if (this.#tools.size <= toolsShown) return;
    const oldest = this.#oldestTool();
    if (oldest !== undefined) this.#tools.delete(oldest);
    this.#toolsGone += 1;
  }

  /** One that has ended goes before one that runs. */
  #oldestTool(): string | undefined {
    const entries = [...this.#tools];
    return (entries.find(([, { status }]) => status === 'completed' || status === 'failed') ?? entries[0])?.[0];
  }

  #planLines(): string {
    if (this.#plan.length === 0) return '';
    const done = this.#plan.filter((entry) => entry.status === 'completed').length;
    const lines = this.#plan.slice(0, planShown).map(({ status, content }) => `- ${planMarks[status]} ${titleLine(content, '(no text)')}`);
    return [`Plan: ${done} of ${this.#plan.length} done`, ...lines].join('\n');
  }

  #toolLines(): string {
    const lines = [...this.#tools.values()].map(({ status, title }) => `- ${marks[status]} ${titleLine(title, 'tool call')}`);
    return [...(this.#toolsGone === 0 ? [] : [`- … ${this.#toolsGone} more before`]), ...lines].join('\n');
  }

  /** The last lines; a single long one is cut at a word. */
  #textEnd(): string {
    const text = this.#text.trim();
    if (text.length <= textShown) return text;
    const end = text.slice(-textShown);
    const line = end.indexOf('\n');
    const start = line >= 0 && line < textShown / 2 ? line + 1 : end.indexOf(' ') + 1;
    return `… ${end.slice(start).trimStart()}`;
  }
}
