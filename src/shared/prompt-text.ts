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
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `[resource ${quoted(block.name)} ${quoted(block.uri)}]`;
    case 'image':
      return `[image ${quoted(block.mimeType)}]`;
    case 'resource':
      return `[resource ${quoted(block.uri)}]\n${block.text}`;
    default:
      return block satisfies never;
  }
}

/** What comes from outside must neither open a new line of the prompt nor get out of its brackets. */
function quoted(text: string): string {
  return JSON.stringify(text.replace(/[\s\u0085]+/g, ' ').trim());
}
