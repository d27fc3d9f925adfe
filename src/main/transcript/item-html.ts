/** A piece of a transcript as HTML. */
import type { EventData, PromptBlock } from '../../shared/events.ts';
import { promptText } from '../../shared/prompt-text.ts';
import { countText, durationText } from '../run/view/figures.ts';
import { excerptOf, visibleLine } from '../run/view/visible-text.ts';
import { rewoundLine, turnEndLine, usageText } from './event-lines.ts';
import { type Html, html, preformatted, shown } from './html.ts';
import { toolCard } from './tool-card.ts';
import type { TranscriptItem } from './transcript-item.ts';

const longestMessage = 64 * 1024;
const longestReasoning = 32 * 1024;
const longestSystem = 32 * 1024;
const longestSummary = 32 * 1024;
const longestEntry = 300;
/** In characters of base64. A larger one is named and not shown. */
const largestImage = 1536 * 1024;
/** What every browser draws and none runs. */
const drawnTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** @param cwd of the session. Throws for data that is not what its type says */
export function itemHtml(item: TranscriptItem, cwd: string): Html {
  switch (item.kind) {
    case 'turn':
      return turnHead(item.data, item.time);
    case 'turn-end':
      return eventLine(turnEndLine(item.data, item), item.data.reason.kind === 'error', 'end');
    case 'said':
      return userBlock(item);
    case 'command':
      return commandBlock(item.data);
    case 'answer':
      return answerBlock(item.data, item.tookMs);
    case 'partial':
      return html`<details class="item"><summary>${item.what}</summary>${preformatted(item.text)}</details>\n`;
    case 'call':
      return toolCard(item.call, cwd);
    case 'plan':
      return planBlock(item.data);
    case 'header':
      return headerBlock(item.data);
    case 'summary':
      return html`<details class="item"><summary>the conversation up to here was replaced by a summary for the model; it is whole here</summary>
${preformatted(excerptOf(item.data.summary, longestSummary))}</details>
`;
    case 'rewound':
      return rewoundBlock(item.data);
    case 'event':
    default:
      return eventLine(item.line, item.bad);
  }
}

export function eventLine(content: Html, bad = false, more = ''): Html {
  return html`<div class="event${bad ? ' bad' : ''}${more === '' ? '' : ` ${more}`}">${content}</div>
`;
}

/** Where a page was cut. */
export function leftOutLine(left: number): Html {
  return eventLine(html`${countText(left)} further pieces are left out here; the log has them all`, true, 'cut');
}

export function damagedLine(damaged: number): Html | undefined {
  return damaged === 0 ? undefined : eventLine(html`${countText(damaged)} lines of the log could not be read`, true);
}

function turnHead({ turn, key, budget }: EventData['turn/start'], time: number): Html {
  const named = key === undefined ? undefined : html`<span class="muted">key ${visibleLine(key, 80)}</span>`;
  const bound =
    budget === undefined ? undefined : html`<span class="muted">budget <code>${visibleLine(JSON.stringify(budget), 200)}</code></span>`;
  const at = new Date(time).toISOString();
  return html`<header class="turn"><h3>Turn ${turn}</h3><small><time datetime="${at}">${at.slice(0, 19).replace('T', ' ')} UTC</time></small>${named}${bound}</header>
`;
}

function userBlock({ who, content, typed }: Extract<TranscriptItem, { kind: 'said' }>): Html {
  const original = typed === undefined ? undefined : html`<p class="muted">typed: ${visibleLine(promptText(typed), 400)}</p>`;
  return html`<div class="item user"><p class="who">${who}</p>${original}${content.map(blockHtml)}</div>
`;
}

/** Answered by the program: the model saw neither. */
function commandBlock({ content, output, isError }: EventData['command/run']): Html {
  const answer = output.text === '' ? html`<p class="none">cancelled</p>` : shown(excerptOf(output.text, longestMessage));
  return html`<div class="item user command"><p class="who">command</p>${content.map(blockHtml)}<div class="text answer${isError ? ' bad' : ''}">${answer}</div></div>
`;
}

function blockHtml(block: PromptBlock): Html {
  switch (block.type) {
    case 'text':
      return html`<div class="text">${shown(excerptOf(block.text, longestMessage))}</div>`;
    case 'resource_link':
      return html`<div class="text">[${visibleLine(block.name, 200)}](${visibleLine(block.uri, 400)})</div>`;
    case 'image':
      return imageBlock(block.mimeType, block.data);
    case 'resource':
      return html`<details><summary>attached: ${visibleLine(block.uri, 400)}</summary>${preformatted(excerptOf(block.text, longestMessage))}</details>`;
    default:
      return html`<div class="muted">${visibleLine(JSON.stringify(block), 200)}</div>`;
  }
}

function imageBlock(mimeType: string, data: string): Html {
  const caption = `image ${visibleLine(mimeType, 40)}, ${countText(Math.floor((data.length * 3) / 4))} bytes`;
  const isDrawn = drawnTypes.has(mimeType) && data.length <= largestImage && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
  const picture = isDrawn ? html`<img alt="" src="data:${mimeType};base64,${data}">` : undefined;
  return html`<figure>${picture}<figcaption class="muted">${caption}</figcaption></figure>`;
}

function answerBlock(data: EventData['assistant/message'], tookMs: number | undefined): Html {
  const took = tookMs === undefined ? '' : ` · ${durationText(tookMs)}`;
  const used = data.usage === undefined ? '' : ` · ${usageText(data.usage)}`;
  const model = data.model === undefined ? '' : ` · ${visibleLine(data.model, 80)}`;
  const odd = data.finish === 'stop' || data.finish === 'tool-calls' ? undefined : html` · <b>${data.finish}</b>`;
  const text = data.text === '' ? undefined : html`<div class="item text">${shown(excerptOf(data.text, longestMessage))}</div>\n`;
  return html`<p class="step">step ${data.step}${took}${used}${model}${odd}</p>
${reasoningBlock(data.reasoning)}${text}`;
}

function reasoningBlock(reasoning: string): Html | undefined {
  if (reasoning === '') return undefined;
  return html`<details class="item thought"><summary>reasoning, ${countText(reasoning.length)} characters</summary><div class="text muted">${shown(excerptOf(reasoning, longestReasoning))}</div></details>
`;
}

function headerBlock(data: EventData['request/header']): Html {
  const tools = data.tools.map((name) => html`<span class="label">${visibleLine(name, 80)}</span> `);
  return html`<details class="item"><summary>model ${visibleLine(data.model, 80)} at ${visibleLine(data.provider, 80)}, ${data.tools.length} tools, instructions</summary>
<p>${tools}</p>${preformatted(excerptOf(data.system, longestSystem))}</details>
`;
}

const marks = { pending: '☐', in_progress: '▸', completed: '☑' } as const;

function planBlock({ todos }: EventData['todo/write']): Html {
  const items = todos.map(({ content, status, priority }) => {
    const weight = priority === 'high' || priority === 'low' ? html` <span class="chip p-${priority}">${priority}</span>` : undefined;
    return html`<li class="${status === 'completed' ? 'done' : status === 'in_progress' ? 'now' : 'open'}">${marks[status]} <span>${visibleLine(content, longestEntry)}</span>${weight}</li>`;
  });
  const done = todos.filter(({ status }) => status === 'completed').length;
  return html`<div class="item plan"><p class="who">plan, ${done} of ${todos.length} done</p><ul class="todo">${items}</ul></div>
`;
}

function rewoundBlock(data: EventData['history/rewound']): Html {
  const note =
    data.note === undefined || data.note === '' ? undefined : html`<div class="text">${shown(excerptOf(data.note, longestMessage))}</div>`;
  const left = (data.left ?? []).map(
    ({ path, why }) => html`<li>${visibleLine(path, longestEntry)}: ${visibleLine(why, longestEntry)}</li>`,
  );
  return html`<div class="item undo"><p class="who">${visibleLine(data.kind, 20)}</p>${eventLine(rewoundLine(data))}${note}${left.length === 0 ? undefined : html`<ul class="muted">${left}</ul>`}</div>
`;
}
