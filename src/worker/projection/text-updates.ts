/**
 * Text as chunk updates. A text of any length becomes pieces that a client can take, all under one message id.
 */
import type { ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk';
import type { EventData, PromptBlock } from '../../shared/events.ts';
import { ContentBudget } from './size-caps.ts';
import { sliceWhole, titleLine } from '../display/title-line.ts';

/** UTF-16 units of one chunk: below 1 MiB of JSON even when every one of them must be escaped. */
const pieceLength = 128 * 1024;

export type ChunkUpdateKind = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk';

/** Chunks that together are the text; none for an empty text. */
export function textUpdates(sessionUpdate: ChunkUpdateKind, messageId: string, text: string): SessionUpdate[] {
  const updates: SessionUpdate[] = [];
  for (let rest = text; rest !== ''; ) {
    const piece = sliceWhole(rest, pieceLength);
    updates.push({ sessionUpdate, messageId, content: { type: 'text', text: piece } });
    rest = rest.slice(piece.length);
  }
  return updates;
}

/** What a person said, as it was typed. */
export function userUpdates({ messageId, content, shown }: EventData['user/message']): SessionUpdate[] {
  return promptUpdates(messageId, shown ?? content);
}

/** A command that was answered here: what was typed, where that is to be shown, and the answer. */
export function commandUpdates({ messageId, content, output }: EventData['command/run'], withPrompt: boolean): SessionUpdate[] {
  const typed = withPrompt ? promptUpdates(messageId, content) : [];
  return [...typed, ...textUpdates('agent_message_chunk', output.messageId, output.text)];
}

/** A prompt as it was sent, block by block. */
function promptUpdates(messageId: string, blocks: readonly PromptBlock[]): SessionUpdate[] {
  return blocks.flatMap((block): SessionUpdate[] => {
    if (block.type === 'text') return textUpdates('user_message_chunk', messageId, block.text);
    return [{ sessionUpdate: 'user_message_chunk', messageId, content: promptBlockContent(block) }];
  });
}

function promptBlockContent(block: Exclude<PromptBlock, { type: 'text' }>): ContentBlock {
  const budget = new ContentBudget();
  switch (block.type) {
    case 'resource_link':
      return { type: 'resource_link', uri: budget.take(block.uri), name: titleLine(block.name, 'link') };
    case 'image':
      return { type: 'image', mimeType: block.mimeType, data: block.data, ...(block.uri === undefined ? {} : { uri: block.uri }) };
    case 'resource': {
      const { uri, text, mimeType } = block;
      return {
        type: 'resource',
        resource: { uri: budget.take(uri), text: budget.take(text), ...(mimeType === undefined ? {} : { mimeType }) },
      };
    }
    default:
      return block satisfies never;
  }
}

/** Says that the model is asked again and what the text above is worth. Its id is made of the event, so a replay has the same. */
export function retryUpdates(data: EventData['llm/retry']): SessionUpdate[] {
  const messageId = `retry-${data.turn}-${data.step}-${data.attempt}`;
  const seconds = (data.delayMs / 1000).toFixed(data.delayMs < 10_000 ? 1 : 0);
  const reason = titleLine(data.message, data.code);
  const text = `The model's answer failed (${reason}). Attempt ${data.attempt + 1} of ${data.maxAttempts} starts in ${seconds} s; text of the failed attempt is discarded.`;
  return textUpdates('agent_thought_chunk', messageId, text);
}

/** What an undo did, for a client that asked for it by a method. Its id is made of the event, so a replay has the same. */
export function rewoundUpdates({ undo, note }: EventData['history/rewound']): SessionUpdate[] {
  return note === undefined ? [] : textUpdates('agent_message_chunk', `undo-${undo}`, note);
}
