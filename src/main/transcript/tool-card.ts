/**
 * A tool call as a card: what was asked, who allowed it, what came of it. Told by the shape of arguments and results, never by a
 * tool's name, so that tools of later releases and of other servers are shown too.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import type { EventData } from '../../shared/events.ts';
import { durationText } from '../run/view/figures.ts';
import { excerptOf, visibleLine } from '../run/view/visible-text.ts';
import { fileDiff } from './diff-view.ts';
import { type Html, html, preformatted } from './html.ts';

export interface CallRecord {
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
  startedAt: number | undefined;
  endedAt: number | undefined;
  result: EventData['tool/result'] | undefined;
  /** Decisions, subagents' doings: lines of the card, in order. */
  readonly lines: Html[];
}

const longestTitle = 160;
const longestResult = 24 * 1024;
const longestArgument = 8 * 1024;
const shortArgument = 200;
const mostArguments = 40;
const mostDiffs = 50;

export function toolCard(call: CallRecord): Html {
  const args = parseArguments(call.arguments);
  const diffs = diffsOf(call.result?.meta);
  const title = titleOf(args);
  return html`<div class="tool"><header><b>${visibleLine(call.name, 80)}</b><code>${title.text}</code>${endChip(call)}${timeText(call)}</header>
<div class="body">${argumentsView(call, args, { title, hasDiffs: diffs.length > 0 })}${call.lines.map((line) => html`<div class="rule">${line}</div>`)}${resultView(call, diffs)}</div></div>
`;
}

function parseArguments(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text === '' ? '{}' : text) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined; // Broken arguments are shown as they came.
  }
}

interface CardTitle {
  readonly text: string;
  /** The argument that the title shows whole. */
  readonly whole: string | undefined;
}

/** The first text among the arguments says most: a path, a command, a pattern. */
function titleOf(args: JsonObject | undefined): CardTitle {
  for (const [name, value] of Object.entries(args ?? {})) {
    if (typeof value !== 'string') continue;
    const text = visibleLine(value, longestTitle);
    return { text, whole: text === value ? name : undefined };
  }
  return { text: '', whole: undefined };
}

function timeText({ startedAt, endedAt }: CallRecord): Html | undefined {
  return startedAt === undefined || endedAt === undefined ? undefined : html`<small>${durationText(endedAt - startedAt)}</small>`;
}

function endChip({ result, startedAt }: CallRecord): Html {
  if (result === undefined) return html`<span class="chip warn-chip">${startedAt === undefined ? 'not started' : 'no result'}</span>`;
  const { exitCode, signal, timedOut } = result.meta ?? {};
  if (timedOut === true) return html`<span class="chip bad-chip">timed out</span>`;
  if (typeof signal === 'string') return html`<span class="chip bad-chip">${visibleLine(signal, 20)}</span>`;
  if (typeof exitCode === 'number') return html`<span class="chip ${exitCode === 0 ? 'ok-chip' : 'bad-chip'}">exit ${exitCode}</span>`;
  if (result.isError) return html`<span class="chip bad-chip">${visibleLine(result.code ?? 'error', 60)}</span>`;
  return html`<span class="chip ok-chip">done</span>`;
}

interface CardHints {
  readonly title: CardTitle;
  readonly hasDiffs: boolean;
}

function argumentsView({ arguments: text }: CallRecord, args: JsonObject | undefined, hints: CardHints): Html | undefined {
  if (args === undefined)
    return html`<div class="rule">arguments that are no JSON object:</div>${preformatted(excerptOf(text, longestArgument), 'out')}`;
  const entries = Object.entries(args)
    .filter(([name]) => name !== hints.title.whole)
    .slice(0, mostArguments);
  const long: Html[] = [];
  const short: Html[] = [];
  for (const [name, value] of entries) {
    if (name === 'command' && typeof value === 'string') {
      long.push(preformatted(`$ ${excerptOf(value, longestArgument)}`, 'cmd'));
      continue;
    }
    const said = typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
    if (said.length <= shortArgument && !said.includes('\n'))
      short.push(html`<dt>${visibleLine(name, 60)}</dt><dd><code>${said}</code></dd>`);
    // A diff below shows the text that was put in and the one it replaced.
    else if (typeof value !== 'string') long.push(folded(name, said));
    else if (!hints.hasDiffs)
      long.push(html`<div class="rule">${visibleLine(name, 60)}</div>${preformatted(excerptOf(said, longestArgument), 'out')}`);
  }
  return html`${long}${short.length === 0 ? undefined : html`<dl>${short}</dl>`}`;
}

function folded(name: string, json: string): Html {
  return html`<details><summary>${visibleLine(name, 60)}</summary>${preformatted(excerptOf(json, longestArgument), 'out')}</details>`;
}

interface DiffOf {
  readonly path: string;
  readonly oldText: string | null;
  readonly newText: string;
}

function resultView({ result }: CallRecord, diffs: readonly DiffOf[]): Html | undefined {
  if (result === undefined) return undefined;
  if (diffs.length > 0) {
    const more = diffs.length > mostDiffs ? html`<div class="rule">… ${diffs.length - mostDiffs} more changes</div>` : undefined;
    return html`${diffs.slice(0, mostDiffs).map(({ path, oldText, newText }) => fileDiff(visibleLine(path, 200), oldText, newText))}${more}`;
  }
  const { output, notes } = result.meta ?? {};
  const shown = [output, ...(Array.isArray(notes) ? notes : [])].filter((part) => typeof part === 'string' && part !== '').join('\n');
  const text = shown === '' ? result.text : shown;
  return text === '' ? html`<div class="rule">no output</div>` : preformatted(excerptOf(text, longestResult), 'out');
}

/** Tolerant of whatever a log holds. */
function diffsOf(meta: JsonObject | undefined): DiffOf[] {
  const list = meta?.['diffs'];
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry) => {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return [];
    const { path, oldText, newText } = entry;
    const whole = typeof path === 'string' && typeof newText === 'string' && (typeof oldText === 'string' || oldText === null);
    return whole ? [{ path, oldText, newText }] : [];
  });
}
