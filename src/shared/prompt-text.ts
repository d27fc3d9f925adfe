/**
 * Flattens the blocks of a prompt to the text a model reads. Used for live prompts, replayed ones and history alike, so
 * all three read the same, and so do exports of a log.
 */
import type { PromptBlock } from './events.ts';

/** Blocks joined by blank lines; a link becomes one bracketed reference line. */
export function promptText(blocks: readonly PromptBlock[]): string {
  return blocks.map(blockText).join('\n\n');
}

function blockText(block: PromptBlock): string {
  return block.type === 'text' ? block.text : `[${oneLine(block.name)}](${oneLine(block.uri)})`;
}

/** A name from outside must not be able to open a new line of the prompt. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
