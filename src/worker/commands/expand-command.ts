/**
 * The prompt that a command of a file makes: its text, with what was typed behind the name put in. Pure.
 */
import { placeholder } from '../../shared/commands/command-text.ts';
import { sliceWhole } from '../display/title-line.ts';
import { visibleText } from '../workspace/visible-text.ts';

const mostArgumentChars = 32 * 1024;
const mostPromptChars = 256 * 1024;

/**
 * `$ARGUMENTS` is all of it, `$1` to `$9` are its words, which quotes hold together. A text without any of these has what was typed
 * at its end. What is put in is never looked at again.
 */
export function expandCommand(body: string, args: string): string {
  const given = sliceWhole(args, mostArgumentChars);
  const words = wordsOf(given);
  let text = '';
  let from = 0;
  let isUsed = false;
  // What is hidden in a file was not seen by whoever ran its command.
  const shown = visibleText(body);
  for (const match of shown.matchAll(placeholder)) {
    isUsed = true;
    const value = match[0] === '$ARGUMENTS' ? given : (words[Number(match[0].slice(1)) - 1] ?? '');
    text += shown.slice(from, match.index) + value;
    from = match.index + match[0].length;
    if (text.length > mostPromptChars) break;
  }
  text += shown.slice(from);
  if (!isUsed && given !== '') text += `\n\n${given}`;
  return text.length <= mostPromptChars ? text : `${sliceWhole(text, mostPromptChars)}\n… (cut here)`;
}

function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? '');
}
