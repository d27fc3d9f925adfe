/**
 * A session's log as HTML, event by event. Holds what is open (calls without a result, an answer that is still streaming) and nothing
 * else, so that a log of any length can be rendered.
 */
import type { EventData, LogEvent, PromptBlock } from '../../shared/events.ts';
import { promptText } from '../../shared/prompt-text.ts';
import { countText, durationText } from '../run/view/figures.ts';
import { excerptOf, visibleLine } from '../run/view/visible-text.ts';
import {
  activityLine,
  askedLine,
  choiceLine,
  compactedBlock,
  decidedLine,
  eventLine,
  instructionsLine,
  mcpLine,
  prunedLine,
  retryLine,
  rewoundLine,
  subagentEndLine,
  subagentStartLine,
  todoBlock,
  turnEndBlock,
  usageText,
  waitLine,
} from './event-lines.ts';
import { type Html, html, preformatted, shown } from './html.ts';
import { type CallRecord, toolCard } from './tool-card.ts';

const longestMessage = 64 * 1024;
const longestReasoning = 32 * 1024;
const longestSystem = 32 * 1024;
const mostCardLines = 60;

export class Transcript {
  /** In the order in which they were taken up. */
  readonly #calls = new Map<string, CallRecord>();
  #turnOpen = false;
  #turnAt = 0;
  #stepAt = 0;
  /** What has streamed of an answer that is not committed. */
  #partial = '';

  /** The HTML that the next event adds; empty for many. Throws for data that is not what its type says. */
  next(event: LogEvent): Html {
    switch (event.type) {
      case 'thread/attached':
        return event.data.epoch > 1 ? eventLine(html`attached to a thread again (${event.data.epoch})`) : html``;
      case 'turn/start':
        return this.#openTurn(event);
      case 'turn/end':
        return html`${this.#flushCalls()}${this.#takePartial('unfinished answer')}${this.#endTurn(event.data, event.time)}`;
      case 'user/message':
        return userBlock(event.data);
      case 'command/run':
        return commandBlock(event.data);
      case 'request/header':
        return headerBlock(event.data);
      case 'step/start':
        this.#stepAt = event.time;
        return html``;
      case 'step/end':
        return this.#flushCalls();
      case 'assistant/chunk':
        if (this.#partial.length < longestMessage) this.#partial += event.data.text;
        return html``;
      case 'assistant/message':
        this.#partial = '';
        return this.#answer(event.data, event.time);
      case 'tool/call':
      case 'tool/start':
      case 'tool/result':
        return this.#toolEvent(event);
      case 'permission/asked':
        return this.#lineOf(event.data.callId, askedLine(event.data));
      case 'permission/decided':
        return this.#lineOf(event.data.callId, decidedLine(event.data));
      case 'subagent/start':
        return this.#lineOf(event.data.callId, subagentStartLine(event.data));
      case 'subagent/activity': {
        const line = activityLine(event.data.activity);
        return line === undefined ? html`` : this.#lineOf(event.data.callId, line);
      }
      case 'subagent/end':
        return this.#lineOf(event.data.callId, subagentEndLine(event.data));
      case 'mode/change':
        return eventLine(html`permission mode: ${visibleLine(event.data.mode, 40)}`);
      case 'options/change':
        return choiceLine(event.data);
      case 'session/title':
        return eventLine(html`title: ${visibleLine(event.data.title, 100)}`);
      case 'todo/write':
        return todoBlock(event.data);
      case 'llm/retry':
        return html`${this.#takePartial('answer that broke off')}${retryLine(event.data)}`;
      case 'llm/wait':
        return waitLine(event.data);
      case 'instructions/read':
        return instructionsLine(event.data);
      case 'mcp/status':
        return mcpLine(event.data);
      case 'history/pruned':
        return prunedLine(event.data);
      case 'history/rewound':
        return rewoundLine(event.data);
      case 'file/snapshot':
      case 'undo/start':
        return html``;
      case 'history/compacted':
        return compactedBlock(event.data);
      default:
        return otherEvent(event);
    }
  }

  /** What is still open when the log ends. */
  end(): Html {
    const unfinished = this.#turnOpen ? eventLine(html`the log ends within this turn`, true) : undefined;
    return html`${this.#flushCalls()}${this.#takePartial('unfinished answer')}${unfinished}`;
  }

  #openTurn({ data, time }: Extract<LogEvent, { type: 'turn/start' }>): Html {
    this.#turnOpen = true;
    this.#turnAt = time;
    const key = data.key === undefined ? undefined : html`<span class="muted">key ${visibleLine(data.key, 80)}</span>`;
    const budget =
      data.budget === undefined
        ? undefined
        : html`<span class="muted">budget <code>${visibleLine(JSON.stringify(data.budget), 200)}</code></span>`;
    return html`<header class="turn"><h3>Turn ${data.turn}</h3><small>${new Date(time).toISOString()}</small>${key}${budget}</header>
`;
  }

  #endTurn(data: EventData['turn/end'], time: number): Html {
    this.#turnOpen = false;
    return turnEndBlock(data, time - this.#turnAt);
  }

  #answer(data: EventData['assistant/message'], time: number): Html {
    const took = this.#stepAt === 0 ? '' : ` · ${durationText(time - this.#stepAt)}`;
    const used = data.usage === undefined ? '' : ` · ${usageText(data.usage)}`;
    const model = data.model === undefined ? '' : ` · ${visibleLine(data.model, 80)}`;
    const odd = data.finish === 'stop' || data.finish === 'tool-calls' ? undefined : html` · <b>${data.finish}</b>`;
    return html`<p class="step">step ${data.step}${took}${used}${model}${odd}</p>
${reasoningBlock(data.reasoning)}${data.text === '' ? undefined : html`<div class="item text">${shown(excerptOf(data.text, longestMessage))}</div>\n`}`;
  }

  #toolEvent(event: Extract<LogEvent, { type: 'tool/call' | 'tool/start' | 'tool/result' }>): Html {
    const { callId } = event.data;
    if (event.type === 'tool/call') {
      const { name, arguments: text } = event.data;
      this.#calls.set(callId, { name, arguments: text, startedAt: undefined, endedAt: undefined, result: undefined, lines: [] });
      return html``;
    }
    const call = this.#calls.get(callId);
    if (event.type === 'tool/start') {
      if (call !== undefined) call.startedAt = event.time;
      return html``;
    }
    // A result without its call: the beginning of the log was damaged.
    if (call === undefined) return eventLine(html`result of an unknown call: ${visibleLine(event.data.text, 200)}`, true);
    call.result = event.data;
    call.endedAt = event.time;
    return this.#flushEnded();
  }

  /** A line of the call's card while it is open, else one of its own. */
  #lineOf(callId: string, line: Html): Html {
    const call = this.#calls.get(callId);
    if (call === undefined) return eventLine(line);
    if (call.lines.length < mostCardLines) call.lines.push(line);
    else if (call.lines.length === mostCardLines) call.lines.push(html`… more`);
    return html``;
  }

  /** Cards stand in the order of their calls, so one that has ended waits for those before it. */
  #flushEnded(): Html {
    const cards: Html[] = [];
    for (const [callId, call] of this.#calls) {
      if (call.result === undefined) break;
      this.#calls.delete(callId);
      cards.push(toolCard(call));
    }
    return html`${cards}`;
  }

  #flushCalls(): Html {
    const cards = [...this.#calls.values()].map(toolCard);
    this.#calls.clear();
    return html`${cards}`;
  }

  #takePartial(what: string): Html {
    const text = this.#partial;
    this.#partial = '';
    return text === '' ? html`` : html`<details class="item"><summary>${what}</summary>${preformatted(text)}</details>\n`;
  }
}

function userBlock({ source, content, shown: typed }: EventData['user/message']): Html {
  const who = { prompt: 'prompt', steer: 'added while the turn ran', notice: 'notice of the program' }[source];
  const original = typed === undefined ? undefined : html`<p class="muted">typed: ${visibleLine(promptText(typed), 400)}</p>`;
  return html`<div class="item user"><p class="who">${who}</p>${original}${content.map(blockHtml)}</div>
`;
}

/** Answered by the program: the model saw neither. */
function commandBlock({ content, output }: EventData['command/run']): Html {
  return html`<div class="item user"><p class="who">command</p>${content.map(blockHtml)}<div class="text">${shown(excerptOf(output.text, longestMessage))}</div></div>
`;
}

function blockHtml(block: PromptBlock): Html {
  switch (block.type) {
    case 'text':
      return html`<div class="text">${shown(excerptOf(block.text, longestMessage))}</div>`;
    case 'resource_link':
      return html`<div class="text">[${visibleLine(block.name, 200)}](${visibleLine(block.uri, 400)})</div>`;
    case 'image':
      return html`<div class="muted">image ${visibleLine(block.mimeType, 40)}, ${countText(Math.floor((block.data.length * 3) / 4))} bytes</div>`;
    case 'resource':
      return html`<details><summary>attached: ${visibleLine(block.uri, 400)}</summary>${preformatted(excerptOf(block.text, longestMessage))}</details>`;
    default:
      return html`<div class="muted">${visibleLine(JSON.stringify(block), 200)}</div>`;
  }
}

function headerBlock(data: EventData['request/header']): Html {
  const tools = data.tools.map((name) => html`<span class="label">${visibleLine(name, 80)}</span> `);
  return html`<details class="item"><summary>model ${visibleLine(data.model, 80)} at ${visibleLine(data.provider, 80)}, ${data.tools.length} tools, instructions</summary>
<p>${tools}</p>${preformatted(excerptOf(data.system, longestSystem))}</details>
`;
}

function reasoningBlock(reasoning: string): Html | undefined {
  if (reasoning === '') return undefined;
  return html`<details class="item"><summary>reasoning, ${countText(reasoning.length)} characters</summary><div class="text muted">${shown(excerptOf(reasoning, longestReasoning))}</div></details>
`;
}

/** Of a later release. */
function otherEvent(event: { readonly type: string; readonly data: object }): Html {
  return eventLine(html`${visibleLine(event.type, 60)} <code>${visibleLine(JSON.stringify(event.data), 300)}</code>`);
}
