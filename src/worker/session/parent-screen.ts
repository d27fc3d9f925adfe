/**
 * The view of a session that works for another session of this server: nothing of it goes to the client. What it does is
 * reported to main, for the session that delegated, at most twice a second.
 */
import type { EventData, LogEvent, TokenUsage } from '../../shared/events.ts';
import type { RenderKind, ToolCallView } from '../../shared/render-intents.ts';
import { pricesAt } from '../../shared/prices/price-hours.ts';
import type { Prices } from '../../shared/session-options.ts';
import type { SubagentActivity, SubagentUsage } from '../../shared/subagent-protocol.ts';
import { costOf } from '../agent/cost.ts';
import { addSubagentUsage } from '../agent/subagent-usage.ts';
import { titleLine } from '../display/title-line.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';
import type { SessionView } from './session-journal.ts';

export interface ParentScreenParts {
  readonly cwd: string;
  readonly tools: (toolName: string) => ToolPresenter | undefined;
  readonly prices: Prices | undefined;
  readonly report: (activities: readonly SubagentActivity[]) => Promise<void>;
}

const reportMs = 500;
/** Between two reports; what comes beyond is left out. */
const mostWaiting = 256;
const mostText = 256 * 1024;

type ToolActivity = Extract<SubagentActivity, { kind: 'tool' }>;

export class ParentScreen implements SessionView {
  readonly #parts: ParentScreenParts;
  readonly #calls = new Map<string, ToolActivity>();
  #usage: SubagentUsage | undefined;
  #waiting: SubagentActivity[] = [];
  #text = '';
  #timer: NodeJS.Timeout | undefined;
  #lastReport = Number.NEGATIVE_INFINITY;

  constructor(parts: ParentScreenParts) {
    this.#parts = parts;
  }

  show(event: LogEvent): void {
    switch (event.type) {
      case 'tool/call':
        this.#startCall(event.data);
        return;
      case 'tool/start':
        this.#changeCall(event.data.callId, 'in_progress');
        return;
      case 'tool/result':
        this.#changeCall(event.data.callId, event.data.isError ? 'failed' : 'completed');
        this.#calls.delete(event.data.callId);
        return;
      case 'todo/write':
        this.#add({ kind: 'plan', entries: event.data.todos });
        return;
      case 'assistant/message':
        this.#endMessage(event.data.usage, event.time);
        return;
      case 'history/compacted':
      case 'subagent/end':
        this.#addUsage(event.data.usage, event.time);
        return;
      case 'turn/end':
        this.#calls.clear();
        this.#report();
        return;
      // Everything else is the child's own business, and stands in its log.
      case 'assistant/chunk':
      case 'command/run':
      case 'file/snapshot':
      case 'history/pruned':
      case 'instructions/read':
      case 'history/rewound':
      case 'llm/retry':
      case 'llm/wait':
      case 'mcp/status':
      case 'mode/change':
      case 'options/change':
      case 'permission/asked':
      case 'permission/decided':
      case 'request/header':
      case 'session/title':
      case 'step/end':
      case 'step/start':
      case 'subagent/activity':
      case 'subagent/start':
      case 'thread/attached':
      case 'turn/start':
      case 'undo/start':
      case 'workspace/observed':
      case 'user/message':
        return;
    }
  }

  showChunk(chunk: EventData['assistant/chunk']): void {
    if (chunk.kind !== 'text') return;
    this.#text = (this.#text + chunk.text).slice(-mostText);
    this.#reportSoon();
  }

  #startCall({ callId, name, arguments: raw }: EventData['tool/call']): void {
    const { title, toolKind } = this.#present(name, raw);
    this.#calls.set(callId, { kind: 'tool', childCallId: callId, title, toolKind, status: 'pending' });
    this.#changeCall(callId, 'pending');
  }

  #changeCall(callId: string, status: ToolActivity['status']): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    const changed = { ...call, status };
    this.#calls.set(callId, changed);
    this.#add(changed);
  }

  #present(name: string, raw: string): { readonly title: string; readonly toolKind: RenderKind } {
    try {
      const view = this.#parts.tools(name)?.presentCall(JSON.parse(raw), { cwd: this.#parts.cwd });
      if (view !== undefined) return { title: titleLine(view.title, name), toolKind: kindOf(view) };
    } catch {
      // Broken or refused arguments: the name says enough.
    }
    return { title: titleLine(name, 'tool call'), toolKind: 'other' };
  }

  /** Messages are told apart, as a reader would see them. */
  #endMessage(usage: TokenUsage | undefined, time: number): void {
    if (this.#text !== '' && !this.#text.endsWith('\n')) this.#text += '\n\n';
    this.#addUsage(usage, time);
  }

  #addUsage(usage: SubagentUsage | undefined, time: number): void {
    if (usage === undefined) return;
    const { prices } = this.#parts;
    const costUsd = usage.costUsd ?? (prices === undefined ? undefined : costOf(pricesAt(prices, time), usage));
    this.#usage = addSubagentUsage(this.#usage, costUsd === undefined ? usage : { ...usage, costUsd });
    this.#add({ kind: 'usage', usage: this.#usage });
  }

  #add(activity: SubagentActivity): void {
    this.#takeText();
    const place = this.#waiting.findIndex((waiting) => isReplaced(waiting, activity));
    if (place >= 0) this.#waiting[place] = activity;
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(activity);
    this.#reportSoon();
  }

  #takeText(): void {
    if (this.#text !== '') this.#waiting.push({ kind: 'text', text: this.#text });
    this.#text = '';
  }

  #reportSoon(): void {
    if (this.#timer !== undefined) return;
    const wait = Math.max(0, this.#lastReport + reportMs - performance.now());
    this.#timer = setTimeout(() => this.#report(), wait);
  }

  #report(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#takeText();
    if (this.#waiting.length === 0) return;
    const activities = this.#waiting;
    this.#waiting = [];
    this.#lastReport = performance.now();
    // Main is gone: so is whoever wanted to know.
    this.#parts.report(activities).catch(() => undefined);
  }
}

function kindOf(view: ToolCallView): RenderKind {
  if (view.card === 'generic') return view.kind ?? 'other';
  return view.card === 'terminal' ? 'execute' : 'edit';
}

/** Of a call, of the plan and of the usage only the newest state counts. */
function isReplaced(waiting: SubagentActivity, by: SubagentActivity): boolean {
  if (waiting.kind === 'tool') return by.kind === 'tool' && waiting.childCallId === by.childCallId;
  return (waiting.kind === 'plan' || waiting.kind === 'usage') && waiting.kind === by.kind;
}
