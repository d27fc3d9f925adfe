/**
 * A piece of a transcript as text for a terminal or a pipe. Whatever the log holds, nothing of it acts on the screen: odd characters are
 * shown as signs.
 */
import type { EventData, PromptBlock } from '../../shared/events.ts';
import { promptText } from '../../shared/prompt-text.ts';
import { countText, durationText } from '../run/view/figures.ts';
import { excerptOf, visibleLine, visibleText } from '../run/view/visible-text.ts';
import { callText } from './call-text.ts';
import { rewoundLine, turnEndLine, usageText } from './event-lines.ts';
import type { Html } from './html.ts';
import { plainWords } from './plain-words.ts';
import type { Paint } from './paint.ts';
import type { TranscriptItem } from './transcript-item.ts';

const longestMessage = 64 * 1024;
const longestThought = 2000;
const longestSummary = 2000;
const longestEntry = 300;

/** Ends with a line feed; a blank line stands before what is read as a whole. Throws for data that is not what its type says. */
export function itemText(item: TranscriptItem, cwd: string, paint: Paint): string {
  switch (item.kind) {
    case 'turn':
      return turnHead(item.data, item.time, paint);
    case 'turn-end':
      return `\n${line(turnEndLine(item.data, item), item.data.reason.kind === 'error', paint)}`;
    case 'said':
      return userText(item, paint);
    case 'command':
      return commandText(item.data, paint);
    case 'answer':
      return answerText(item.data, item.tookMs, paint);
    case 'partial':
      return `\n${paint('dim', `${item.what}:`)}\n${visibleText(item.text)}\n`;
    case 'call':
      return callText(item.call, cwd, paint);
    case 'plan':
      return planText(item.data, paint);
    case 'header': {
      const { model, provider, tools } = item.data;
      return `${paint('dim', `· model ${visibleLine(model, 80)} at ${visibleLine(provider, 80)}, ${tools.length} tools`)}\n`;
    }
    case 'summary':
      return `\n${paint('dim', 'the conversation up to here was replaced by a summary for the model:')}\n${paint('dim', visibleText(excerptOf(item.data.summary, longestSummary)))}\n`;
    case 'rewound':
      return rewoundText(item.data, paint);
    case 'event':
    default:
      return line(item.line, item.bad, paint);
  }
}

function line(html: Html, bad: boolean, paint: Paint): string {
  return `${paint(bad ? 'red' : 'dim', `· ${plainWords(html)}`)}\n`;
}

function turnHead({ turn, key }: EventData['turn/start'], time: number, paint: Paint): string {
  const at = new Date(time).toISOString().slice(0, 19).replace('T', ' ');
  const named = key === undefined ? '' : `, key ${visibleLine(key, 80)}`;
  return `\n${paint('bold', `── Turn ${turn}`)} ${paint('dim', `${at} UTC${named}`)}\n`;
}

function userText({ who, content, typed }: Extract<TranscriptItem, { kind: 'said' }>, paint: Paint): string {
  const label = who === 'prompt' ? '' : `${paint('dim', `${who}:`)}\n`;
  const original = typed === undefined ? '' : `${paint('dim', `typed: ${visibleLine(promptText(typed), 400)}`)}\n`;
  const text = content.map(blockText).join('\n').trimEnd();
  return `\n${label}${original}${quoted(text, paint)}`;
}

/** With a bar before each line, so that it is seen who speaks. */
function quoted(text: string, paint: Paint): string {
  const bar = paint('cyan', '┃');
  return text
    .split('\n')
    .map((one) => `${bar} ${one}\n`)
    .join('');
}

function commandText({ content, output, isError }: EventData['command/run'], paint: Paint): string {
  const answer = output.text === '' ? paint('dim', 'cancelled') : visibleText(excerptOf(output.text, longestMessage));
  return `\n${quoted(content.map(blockText).join('\n'), paint)}${isError ? paint('red', answer) : answer}\n`;
}

function blockText(block: PromptBlock): string {
  switch (block.type) {
    case 'text':
      return visibleText(excerptOf(block.text, longestMessage));
    case 'resource_link':
      return `[${visibleLine(block.name, 200)}](${visibleLine(block.uri, 400)})`;
    case 'image':
      return `[image ${visibleLine(block.mimeType, 40)}, ${countText(Math.floor((block.data.length * 3) / 4))} bytes]`;
    case 'resource':
      return `[attached: ${visibleLine(block.uri, 400)}, ${countText(block.text.length)} characters]`;
    default:
      return visibleLine(JSON.stringify(block), 200);
  }
}

function answerText(data: EventData['assistant/message'], tookMs: number | undefined, paint: Paint): string {
  const took = tookMs === undefined ? '' : ` · ${durationText(tookMs)}`;
  const used = data.usage === undefined ? '' : ` · ${usageText(data.usage)}`;
  const odd = data.finish === 'stop' || data.finish === 'tool-calls' ? '' : ` · ${data.finish}`;
  const head = paint('dim', `· step ${data.step}${took}${used}${odd}`);
  const thought =
    data.reasoning === '' ? '' : `${paint('dim', `thought: ${visibleText(excerptOf(data.reasoning, longestThought)).trim()}`)}\n`;
  const text = data.text === '' ? '' : `\n${visibleText(excerptOf(data.text, longestMessage)).trimEnd()}\n`;
  return `\n${head}\n${thought}${text}`;
}

const marks = { pending: '☐', in_progress: '▸', completed: '☑' } as const;

function planText({ todos }: EventData['todo/write'], paint: Paint): string {
  const rows = todos.map(({ content, status, priority }) => {
    const weight = priority === 'high' || priority === 'low' ? ` ${paint('yellow', `(${priority})`)}` : '';
    const text = `${marks[status]} ${visibleLine(content, longestEntry)}`;
    return `  ${status === 'completed' ? paint('dim', text) : status === 'in_progress' ? paint('bold', text) : text}${weight}\n`;
  });
  const done = todos.filter(({ status }) => status === 'completed').length;
  return `${paint('dim', `plan, ${done} of ${todos.length} done`)}\n${rows.join('')}`;
}

function rewoundText(data: EventData['history/rewound'], paint: Paint): string {
  const left = (data.left ?? []).map(({ path, why }) => `  ${visibleLine(path, longestEntry)}: ${visibleLine(why, longestEntry)}\n`);
  const note = data.note === undefined || data.note === '' ? '' : `${visibleText(excerptOf(data.note, longestMessage))}\n`;
  return `\n${paint('yellow', `${visibleLine(data.kind, 20)}: ${plainWords(rewoundLine(data))}`)}\n${note}${left.join('')}`;
}
