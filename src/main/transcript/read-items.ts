/**
 * Makes the pieces of a transcript from a session's log, event by event. Holds what is open (calls without a result, an answer that is
 * still streaming) and nothing else, so that a log of any length can be shown.
 */
import type { EventData, LogEvent } from '../../shared/events.ts';
import { headOf, visibleLine } from '../run/view/visible-text.ts';
import {
  activityLine,
  askedLine,
  choiceLine,
  decidedLine,
  instructionsLine,
  mcpLine,
  observedLine,
  prunedLine,
  retryLine,
  subagentEndLine,
  subagentStartLine,
  waitLine,
} from './event-lines.ts';
import { type Html, html } from './html.ts';
import type { CallRecord, EventLine, McpOrigin, TranscriptItem } from './transcript-item.ts';

const longestPartial = 64 * 1024;
const mostCardLines = 60;
/** Of all servers together. */
const mostMcpTools = 4096;
const mcpPrefix = 'mcp__';

type Items = readonly TranscriptItem[];

export class ItemReader {
  /** In the order in which they were taken up. */
  readonly #calls = new Map<string, CallRecord>();
  readonly #mcpTools = new Map<string, McpOrigin>();
  #turnOpen = false;
  #turnAt = 0;
  #stepAt = 0;
  #context: EventData['step/end']['context'];
  /** What has streamed of an answer that is not committed. */
  #partial = '';

  /** What the next event adds; nothing for many. Throws for data that is not what its type says. */
  next(event: LogEvent): Items {
    switch (event.type) {
      case 'thread/attached':
        return event.data.epoch > 1 ? said(html`attached to a thread again (${event.data.epoch})`) : [];
      case 'turn/start':
        this.#turnOpen = true;
        this.#turnAt = event.time;
        return [{ kind: 'turn', data: event.data, time: event.time }];
      case 'turn/end':
        return [...this.#flushCalls(), ...this.#takePartial('unfinished answer'), this.#endTurn(event.data, event.time)];
      case 'user/message':
        return [{ kind: 'said', who: speakers[event.data.source], content: event.data.content, typed: event.data.shown }];
      case 'command/run':
        return [{ kind: 'command', data: event.data }];
      case 'request/header':
        return [{ kind: 'header', data: event.data }];
      case 'step/start':
        this.#stepAt = event.time;
        return [];
      case 'step/end':
        this.#context = event.data.context ?? this.#context;
        return this.#flushCalls();
      case 'assistant/chunk':
        if (this.#partial.length < longestPartial) this.#partial += headOf(event.data.text, longestPartial);
        return [];
      case 'assistant/message':
        this.#partial = '';
        return [{ kind: 'answer', data: event.data, tookMs: this.#stepAt === 0 ? undefined : event.time - this.#stepAt }];
      case 'tool/call':
      case 'tool/start':
      case 'tool/result':
        return this.#toolEvent(event);
      case 'permission/asked':
        return this.#lineOf(event.data.callId, { line: askedLine(event.data), bad: false });
      case 'permission/decided':
        return this.#lineOf(event.data.callId, { line: decidedLine(event.data), bad: !event.data.outcome.startsWith('allow') });
      case 'subagent/start':
        return this.#lineOf(event.data.callId, { line: subagentStartLine(event.data), bad: false });
      case 'subagent/activity': {
        const line = activityLine(event.data.activity);
        return line === undefined ? [] : this.#lineOf(event.data.callId, { line, bad: false });
      }
      case 'subagent/end':
        return this.#lineOf(event.data.callId, { line: subagentEndLine(event.data), bad: event.data.stopReason !== 'completed' });
      case 'mode/change':
        return said(html`permission mode: <b>${visibleLine(event.data.mode, 40)}</b>`);
      case 'options/change':
        return said(choiceLine(event.data));
      case 'session/title':
        return said(html`title: ${visibleLine(event.data.title, 100)}`);
      case 'todo/write':
        return [{ kind: 'plan', data: event.data }];
      case 'llm/retry':
        return [...this.#takePartial('answer that broke off'), ...said(retryLine(event.data), true)];
      case 'llm/wait':
        return said(waitLine(event.data));
      case 'instructions/read':
        return said(instructionsLine(event.data));
      case 'mcp/status':
        this.#learnMcp(event.data);
        return said(mcpLine(event.data), event.data.state !== 'connected');
      case 'history/pruned':
        return said(prunedLine(event.data));
      case 'history/rewound':
        return [{ kind: 'rewound', data: event.data }];
      case 'file/snapshot':
      case 'undo/start':
        return [];
      case 'workspace/observed': {
        const line = observedLine(event.data);
        return line === undefined ? [] : this.#lineOf(event.data.callId, { line, bad: false });
      }
      case 'history/compacted':
        return [{ kind: 'summary', data: event.data }];
      default:
        return otherEvent(event);
    }
  }

  /** What is still open when the log ends. */
  end(): Items {
    const unfinished = this.#turnOpen ? said(html`the log ends within this turn`, true) : [];
    return [...this.#flushCalls(), ...this.#takePartial('unfinished answer'), ...unfinished];
  }

  #endTurn(data: EventData['turn/end'], time: number): TranscriptItem {
    this.#turnOpen = false;
    return { kind: 'turn-end', data, elapsedMs: time - this.#turnAt, context: this.#context };
  }

  #toolEvent(event: Extract<LogEvent, { type: 'tool/call' | 'tool/start' | 'tool/result' }>): Items {
    const { callId } = event.data;
    if (event.type === 'tool/call') {
      const { name, arguments: text } = event.data;
      const call = { name, arguments: text, mcp: this.#mcpOrigin(name), lines: [] };
      this.#calls.set(callId, { ...call, startedAt: undefined, endedAt: undefined, result: undefined });
      return [];
    }
    const call = this.#calls.get(callId);
    if (event.type === 'tool/start') {
      if (call !== undefined) call.startedAt = event.time;
      return [];
    }
    // A result without its call: the beginning of the log was damaged.
    if (call === undefined) return said(html`result of an unknown call: ${visibleLine(event.data.text, 200)}`, true);
    call.result = event.data;
    call.endedAt = event.time;
    return this.#flushEnded();
  }

  #learnMcp({ name: server, tools = [] }: EventData['mcp/status']): void {
    for (const { name, tool, kind = 'other' } of tools) {
      if (this.#mcpTools.size < mostMcpTools || this.#mcpTools.has(name)) this.#mcpTools.set(name, { server, tool, kind });
    }
  }

  /** The log may not say it, as the session can have been forked: then the name does. */
  #mcpOrigin(name: string): McpOrigin | undefined {
    const known = this.#mcpTools.get(name);
    if (known !== undefined || !name.startsWith(mcpPrefix)) return known;
    const [server = '', ...tool] = name.slice(mcpPrefix.length).split('__');
    return { server, tool: tool.join('__'), kind: 'other' };
  }

  /** A line of the call's card while it is open, else one of its own. */
  #lineOf(callId: string, line: EventLine): Items {
    const call = this.#calls.get(callId);
    if (call === undefined) return [{ kind: 'event', ...line }];
    if (call.lines.length < mostCardLines) call.lines.push(line);
    else if (call.lines.length === mostCardLines) call.lines.push({ line: html`… more`, bad: false });
    return [];
  }

  /** Cards stand in the order of their calls, so one that has ended waits for those before it. */
  #flushEnded(): Items {
    const ended: TranscriptItem[] = [];
    for (const [callId, call] of this.#calls) {
      if (call.result === undefined) break;
      this.#calls.delete(callId);
      ended.push({ kind: 'call', call });
    }
    return ended;
  }

  #flushCalls(): Items {
    const open = [...this.#calls.values()].map((call): TranscriptItem => ({ kind: 'call', call }));
    this.#calls.clear();
    return open;
  }

  #takePartial(what: string): Items {
    const text = this.#partial;
    this.#partial = '';
    return text === '' ? [] : [{ kind: 'partial', what, text }];
  }
}

const speakers = { prompt: 'prompt', steer: 'added while the turn ran', notice: 'notice of the program' } as const;

function said(line: Html, bad = false): Items {
  return [{ kind: 'event', line, bad }];
}

/** Of a later release. */
function otherEvent(event: { readonly type: string; readonly data: object }): Items {
  return said(html`${visibleLine(event.type, 60)} <code>${visibleLine(JSON.stringify(event.data), 300)}</code>`);
}
