/** A tool call as text: its title, how it ended, and the part of its result that says most. */
import { durationText } from '../run/view/figures.ts';
import { headOf, visibleLine, visibleText } from '../run/view/visible-text.ts';
import { callEnd, type DiffOf, diffsOf, isTerminal, parseArguments, resultText } from './call-parts.ts';
import { callTitle } from './call-title.ts';
import { diffLines } from './diff-view.ts';
import { plainWords } from './plain-words.ts';
import type { Paint } from './paint.ts';
import type { CallRecord } from './transcript-item.ts';

const indent = '    ';
const mostDiffs = 20;
const mostDiffLines = 200;
/** Of a result: the title of what was read or found says most. */
const mostLines = { read: 4, search: 6, execute: 40, other: 20 } as const;
const longestResult = 24 * 1024;
const marks = { ok: '✓', bad: '✗', open: '…' } as const;
const colours = { ok: 'green', bad: 'red', open: 'yellow' } as const;

export function callText(call: CallRecord, cwd: string, paint: Paint): string {
  const args = parseArguments(call.arguments);
  const title = callTitle(call, args, cwd);
  const { text, state } = callEnd(call);
  const took = call.startedAt === undefined || call.endedAt === undefined ? '' : ` ${durationText(call.endedAt - call.startedAt)}`;
  const end = state === 'ok' && text === 'done' ? '' : ` ${paint(colours[state], text)}`;
  const head = `${paint(colours[state], marks[state])} ${paint('bold', title.text)}${end}${paint('dim', took)}\n`;
  const lines = call.lines.map(
    ({ line, bad }) => `${paint(bad ? 'red' : 'dim', `${indent}${plainWords(line).replaceAll('\n', `\n${indent}`)}`)}\n`,
  );
  const command = args?.['command'];
  const whole =
    typeof command === 'string' && !title.told.includes('command')
      ? indented(`$ ${visibleText(headOf(command, 4096))}`, paint, 'cyan')
      : '';
  const diffs = diffsOf(call);
  const kind = title.kind === 'read' || title.kind === 'search' || title.kind === 'execute' ? title.kind : 'other';
  const result =
    diffs.length > 0
      ? diffs
          .slice(0, mostDiffs)
          .map((diff) => diffText(diff, cwd, paint))
          .join('')
      : shownResult(call, mostLines[kind], paint);
  const more = diffs.length > mostDiffs ? `${indent}… ${diffs.length - mostDiffs} more changes\n` : '';
  return `${head}${lines.join('')}${whole}${result}${more}`;
}

function shownResult(call: CallRecord, most: number, paint: Paint): string {
  if (call.result === undefined) return '';
  const text = visibleText(headOf(resultText(call), longestResult)).trimEnd();
  if (text === '') return '';
  const lines = text.split('\n');
  // The end of a command's output says how it went; the beginning of anything else says what it is.
  const isCut = lines.length > most;
  const shown = !isCut ? lines : isTerminal(call) ? lines.slice(-most) : lines.slice(0, most);
  const note = isCut ? `${indent}${paint('dim', `… ${lines.length - most} more lines`)}\n` : '';
  const body = indented(shown.join('\n'), paint, call.result.isError ? 'red' : undefined);
  return isTerminal(call) ? `${note}${body}` : `${body}${note}`;
}

function diffText({ path, oldText, newText }: DiffOf, cwd: string, paint: Paint): string {
  const short = visibleLine(path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path, 200);
  const lines = diffLines(oldText, newText);
  const rows = lines.slice(0, mostDiffLines).map((line) => {
    const text = visibleText(line);
    return `${indent}${line.startsWith('+') ? paint('green', text) : line.startsWith('-') ? paint('red', text) : paint('dim', text)}\n`;
  });
  const rest = lines.length - mostDiffLines;
  return `${indent}${paint('bold', oldText === null ? `${short} (new)` : short)}\n${rows.join('')}${rest > 0 ? `${indent}… ${rest} more lines\n` : ''}`;
}

function indented(text: string, paint: Paint, style?: 'red' | 'cyan'): string {
  return text
    .split('\n')
    .map((line) => `${indent}${style === undefined ? line : paint(style, line)}\n`)
    .join('');
}
