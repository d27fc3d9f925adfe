/**
 * What an undo did, in Markdown for the person who asked: what was changed, what was left and why, what no undo can know of.
 */
import { relativePath } from '../display/display-path.ts';
import { sliceWhole, titleLine } from '../display/title-line.ts';
import type { RewindOutcome, RewoundFile } from '../../shared/undo-protocol.ts';
import { promptText } from '../../shared/prompt-text.ts';
import type { PromptTurn } from './log-timeline.ts';

const mostFiles = 20;
const mostCommands = 10;
const longestPrompt = 60;

/** @param filesAsked whether files were to be restored at all */
export function outcomeText(outcome: RewindOutcome, { cwd, filesAsked }: { readonly cwd: string; readonly filesAsked: boolean }): string {
  const { kind, turns, files, notUndone } = outcome;
  const isRedo = kind === 'redo';
  const prompts = turns.length === 1 ? `prompt ${turns[0]}` : `${turns.length} prompts`;
  const head = turns.length === 0 ? '' : isRedo ? `**Brought back ${prompts}.**` : `**Undone: ${prompts}**, with what followed.`;
  const of = (wanted: RewoundFile['outcome']): readonly RewoundFile[] => files.filter((file) => file.outcome === wanted);
  return [
    head === '' ? '**Done.**' : head,
    filesAsked ? fileLines({ restored: of('restored'), removed: of('removed'), left: of('left') }, cwd) : 'Files are as they were.',
    of('left').some(({ canForce }) => canForce === true) ? forceAdvice(kind) : undefined,
    notUndone.length === 0 ? undefined : notUndoneText(notUndone, isRedo),
    isRedo ? undefined : '`/redo` takes this back, until the next prompt.',
  ]
    .filter((part) => part !== undefined)
    .join('\n\n');
}

/** One line that names a prompt of the conversation. */
export function promptLine({ turn, content }: PromptTurn): string {
  return `${turn}. ${promptTitle(content)}`;
}

function promptTitle(content: PromptTurn['content']): string {
  const line = titleLine(promptText(content), '(no text)');
  const short = line.length > longestPrompt ? `${sliceWhole(line, longestPrompt - 1)}…` : line;
  return codeSpan(short);
}

function fileLines(groups: Record<RewoundFile['outcome'], readonly RewoundFile[]>, cwd: string): string {
  const { restored, removed, left } = groups;
  if (restored.length + removed.length + left.length === 0) return 'No file had to be changed.';
  const name = ({ path }: RewoundFile): string => codeSpan(titleLine(relativePath(path, cwd)));
  return [
    ...(restored.length === 0 ? [] : [`- restored: ${listed(restored.map(name), mostFiles)}`]),
    ...(removed.length === 0 ? [] : [`- removed: ${listed(removed.map(name), mostFiles)}`]),
    ...left.slice(0, mostFiles).map((file) => `- **left as it is**: ${name(file)}: ${file.why ?? 'it could not be changed'}`),
    ...(left.length > mostFiles ? [`- left as they are, too: ${left.length - mostFiles} more`] : []),
  ].join('\n');
}

function forceAdvice(kind: RewindOutcome['kind']): string {
  if (kind === 'redo') return 'To overwrite what was left: `/undo`, then `/redo --force`.';
  return `To overwrite what was left: \`/redo\`, then \`/${kind} --force\`. What is overwritten is kept, too.`;
}

function notUndoneText(work: readonly string[], isRedo: boolean): string {
  const what = listed(work.map(codeSpan), mostCommands);
  return isRedo
    ? `**Not brought back**: whatever these changed then: ${what}.`
    : `**Not undone**: whatever these have changed is as they left it: ${what}.`;
}

function listed(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** The span is longer than any run of backticks in the text, so the text cannot end it early. */
function codeSpan(text: string): string {
  let longest = 0;
  for (const run of text.matchAll(/`+/g)) longest = Math.max(longest, run[0].length);
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`;
}
