/** Changes of files, coloured: from before and after, or from the text of a patch. Bounded in lines, characters and time. */
import { structuredPatch } from 'diff';
import { excerptOf, headOf } from '../run/view/visible-text.ts';
import { type Html, html, shown } from './html.ts';

const mostLines = 600;
const mostChars = 64 * 1024;
/** Past this many changed lines, or this time, both sides are shown whole. */
const maxEditLength = 1500;
const maxDiffMs = 100;

/** One change of one file. `oldText: null` is a new file. */
export function fileDiff(path: string, oldText: string | null, newText: string): Html {
  return diffBox(oldText === null ? `${path} (new)` : path, diffLines(oldText, newText));
}

/** A unified diff, as `git diff` writes it. */
export function patchView(title: string, patch: string): Html {
  const lines = excerptOf(patch, mostChars).split('\n');
  if (lines.at(-1) === '') lines.pop();
  return diffBox(title, lines);
}

/** Each with its sign: `+`, `-`, a blank; `@@` between parts that lie apart. */
export function diffLines(oldText: string | null, newText: string): string[] {
  const [before, after] = [headOf(oldText ?? '', mostChars), headOf(newText, mostChars)];
  const options = { context: 3, maxEditLength, timeout: maxDiffMs };
  const patch = structuredPatch('', '', before, after, undefined, undefined, options);
  if (patch === undefined) return [...signed('-', before), ...signed('+', after)];
  return patch.hunks.flatMap((hunk, index) => (index === 0 ? hunk.lines : ['@@', ...hunk.lines]));
}

function signed(sign: string, text: string): string[] {
  return text === '' ? [] : text.split('\n').map((line) => sign + line);
}

function diffBox(title: string, lines: readonly string[]): Html {
  const rest = lines.length - mostLines;
  const more = rest > 0 ? html`<i>… ${rest} more lines …</i>` : undefined;
  return html`<div class="diff"><div>${title}</div><pre>${lines.slice(0, mostLines).map(diffLine)}${more}</pre></div>`;
}

/** Headers of a patch come before the signs that they begin with. */
function diffLine(line: string): Html {
  if (/^(?:diff |index |--- |\+\+\+ |@@|\\|new file|deleted file|similarity |rename |old mode|new mode|GIT binary)/.test(line)) {
    return html`<i>${shown(line)}</i>`;
  }
  if (line.startsWith('+')) return html`<ins>${shown(line)}</ins>`;
  return line.startsWith('-') ? html`<del>${shown(line)}</del>` : html`<span>${shown(line)}</span>`;
}
