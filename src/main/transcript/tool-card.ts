/** A tool call as a card, as an editor shows it: what was asked, who allowed it, what came of it. */
import type { JsonObject } from '../../shared/errors.ts';
import { countText, durationText } from '../run/view/figures.ts';
import { excerptOf, visibleLine } from '../run/view/visible-text.ts';
import { callEnd, type DiffOf, diffsOf, isTerminal, parseArguments, resultText } from './call-parts.ts';
import { type CallTitle, callTitle } from './call-title.ts';
import { fileDiff } from './diff-view.ts';
import { type Html, html, preformatted } from './html.ts';
import { kindIcon } from './kind-icon.ts';
import type { CallRecord } from './transcript-item.ts';

const longestResult = 24 * 1024;
const longestArgument = 8 * 1024;
const shortArgument = 200;
const mostArguments = 40;
const mostDiffs = 50;
/** What was read or found is folded when it is longer than this, as its title says most. */
const mostOpenLines = 6;
const chipOf = { ok: 'ok-chip', bad: 'bad-chip', open: 'warn-chip' } as const;

/** @param cwd of the session: paths below it are shown short */
export function toolCard(call: CallRecord, cwd: string): Html {
  const args = parseArguments(call.arguments);
  const title = callTitle(call, args, cwd);
  const diffs = diffsOf(call);
  const { text, state } = callEnd(call);
  const lines = call.lines.map(({ line, bad }) => html`<div class="rule${bad ? ' bad' : ''}">${line}</div>`);
  const body = html`${lines}${argumentsView(call, args, { title, hasDiffs: diffs.length > 0 })}${resultView(call, diffs, { title, cwd })}`;
  return html`<div class="tool"><header>${kindIcon(title.kind)}<b>${title.text}</b><small>${visibleLine(call.name, 80)}</small><span class="chip ${chipOf[state]}">${text}</span>${timeText(call)}</header>
${body.text === '' ? undefined : html`<div class="body">${body}</div>`}</div>
`;
}

function timeText({ startedAt, endedAt }: CallRecord): Html | undefined {
  return startedAt === undefined || endedAt === undefined ? undefined : html`<small>${durationText(endedAt - startedAt)}</small>`;
}

interface CardHints {
  readonly title: CallTitle;
  readonly hasDiffs: boolean;
}

function argumentsView(call: CallRecord, args: JsonObject | undefined, hints: CardHints): Html | undefined {
  if (args === undefined)
    return html`<div class="rule">arguments that are no JSON object:</div>${preformatted(excerptOf(call.arguments, longestArgument), 'out')}`;
  const entries = Object.entries(args)
    .filter(([name]) => !hints.title.told.includes(name))
    .slice(0, mostArguments);
  const long: Html[] = [];
  const short: Html[] = [];
  for (const [name, value] of entries) {
    // The command stands above its output, in the terminal.
    if (name === 'command' && typeof value === 'string' && isTerminal(call)) continue;
    // What the command is for, in the model's words.
    if (name === 'description' && typeof value === 'string' && hints.title.kind === 'execute') {
      long.push(html`<div class="rule">${visibleLine(value, shortArgument)}</div>`);
      continue;
    }
    const said = typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
    // A diff below shows the text that was put in and the one it replaced.
    if (hints.hasDiffs && typeof value === 'string') continue;
    if (said.length <= shortArgument && !said.includes('\n'))
      short.push(html`<dt>${visibleLine(name, 60)}</dt><dd><code>${said}</code></dd>`);
    else long.push(folded(visibleLine(name, 60), excerptOf(said, longestArgument)));
  }
  return html`${long}${short.length === 0 ? undefined : html`<dl>${short}</dl>`}`;
}

function folded(summary: string, text: string): Html {
  return html`<details><summary>${summary}</summary>${preformatted(text, 'out')}</details>`;
}

function resultView(call: CallRecord, diffs: readonly DiffOf[], { title, cwd }: { title: CallTitle; cwd: string }): Html | undefined {
  if (call.result === undefined) return undefined;
  if (diffs.length > 0) {
    const more = diffs.length > mostDiffs ? html`<div class="rule">… ${diffs.length - mostDiffs} more changes</div>` : undefined;
    return html`${diffs.slice(0, mostDiffs).map(({ path, oldText, newText }) => fileDiff(pathIn(cwd, path), oldText, newText))}${more}`;
  }
  const text = resultText(call);
  if (isTerminal(call)) return terminalView(call, text);
  if (text === '') return html`<div class="rule">no output</div>`;
  const shown = excerptOf(text, longestResult);
  const lines = text.trimEnd().split('\n').length;
  const isFolded = !call.result.isError && lines > mostOpenLines && (title.kind === 'read' || title.kind === 'search');
  return isFolded ? folded(`${countText(lines)} lines`, shown) : preformatted(shown, 'out');
}

function terminalView(call: CallRecord, output: string): Html {
  const command = parseArguments(call.arguments)?.['command'];
  const prompt = typeof command === 'string' ? preformatted(`$ ${excerptOf(command, longestArgument)}`, 'cmd') : undefined;
  const { text, state } = callEnd(call);
  const rest = output === '' ? html`<i>no output</i>` : preformatted(excerptOf(output, longestResult).replace(/\n+$/, ''));
  return html`<div class="term">${prompt}${rest}<div class="${state}">${text}</div></div>`;
}

function pathIn(cwd: string, path: string): string {
  return visibleLine(path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path, 200);
}
