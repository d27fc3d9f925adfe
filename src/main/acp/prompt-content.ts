/**
 * Checks the content blocks of a prompt and keeps what the session log stores: text and resource links, in order.
 */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import type { PromptBlock } from '../../shared/events.ts';

/**
 * @throws ServerError UNSUPPORTED_CONTENT for image, audio and embedded resources, which initialize does not advertise;
 * EMPTY_PROMPT when nothing but blank text is left (it would start no work, so no turn would ever answer)
 */
export function promptContent(blocks: readonly ContentBlock[]): PromptBlock[] {
  const content = blocks.map(promptBlock);
  const saysSomething = content.some((block) => block.type !== 'text' || block.text.trim() !== '');
  if (!saysSomething) throw new ServerError('EMPTY_PROMPT', 'The prompt holds no text and no resource link.');
  return content;
}

function promptBlock(block: ContentBlock, index: number): PromptBlock {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'resource_link':
      return { type: 'resource_link', uri: block.uri, name: block.name };
    case 'image':
    case 'audio':
    case 'resource':
      throw new ServerError('UNSUPPORTED_CONTENT', `prompt[${index}] is of a kind that this server does not take: ${block.type}.`, {
        data: { index, expected: ['text', 'resource_link'] },
      });
    default:
      return block satisfies never;
  }
}
