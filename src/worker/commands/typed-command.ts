/**
 * Whether a prompt is a slash command, by its form alone. Pure.
 */
import type { PromptBlock } from '../../shared/events.ts';
import { promptText } from '../../shared/prompt-text.ts';

export interface TypedCommand {
  /** Without the slash. */
  readonly name: string;
  /** What stands behind the name, on to the end of the prompt; links in it read as they do for a model. Trimmed. */
  readonly args: string;
  /** The prompt as it was typed. */
  readonly content: readonly PromptBlock[];
  /** What stands before the name, and images and attached texts behind it: they are part of no argument. */
  readonly before: readonly PromptBlock[];
  readonly attached: readonly PromptBlock[];
}

const form = /^\/([a-z0-9][a-z0-9:_-]{0,63})(?:\s|$)/;

/** The first text must begin with the slash; `undefined` for anything else. */
export function typedCommand(content: readonly PromptBlock[]): TypedCommand | undefined {
  const at = content.findIndex(({ type }) => type === 'text');
  const block = content[at];
  if (block?.type !== 'text') return undefined;
  const name = form.exec(block.text)?.[1];
  if (name === undefined) return undefined;
  const later = content.slice(at + 1);
  const words = [block.text.slice(name.length + 1), ...later.filter(isWords).map((one) => promptText([one]))];
  const args = words
    .map((text) => text.trim())
    .join(' ')
    .trim();
  return { name, args, content, before: content.slice(0, at), attached: later.filter((one) => !isWords(one)) };
}

function isWords({ type }: PromptBlock): boolean {
  return type === 'text' || type === 'resource_link';
}
