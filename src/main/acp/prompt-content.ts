/**
 * Checks the content blocks of a prompt and keeps what the session log stores of them, in order: text, links, text that the
 * client attached, and images where the model takes them.
 */
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { Profile } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import type { PromptBlock, PromptResource } from '../../shared/events.ts';
import { takesImages } from '../../shared/model-images.ts';
import { type ChoiceSettings, chosenModel, chosenModelName, offeredModels } from '../../shared/session-choices.ts';
import type { Session } from '../sessions/session.ts';
import { ImageIntake } from './prompt-images.ts';

/** Characters of attached text that are kept: of one resource, and of all of a prompt. */
export const mostResourceChars = 128 * 1024;
const mostAttachedChars = 512 * 1024;

/** What `initialize` says of prompts. */
export interface PromptKinds {
  readonly images: boolean;
  /** The model that is chosen, where it takes no images though another one of the session would. */
  readonly blindModel?: string;
  /** Text that the client attaches. */
  readonly resources: boolean;
}

/**
 * Images are advertised where one of the models that a session may have takes them. Attached text is an editor's: a program can say
 * what it means in a text.
 */
export function promptKinds(settings: ChoiceSettings, profile: Profile): PromptKinds {
  return { images: offersImages(settings), resources: profile === 'editor' };
}

/** Settings never change, and each prompt asks. */
const imageOffers = new WeakMap<ChoiceSettings, boolean>();

function offersImages(settings: ChoiceSettings): boolean {
  const known = imageOffers.get(settings);
  if (known !== undefined) return known;
  const images = offeredModels(settings).some((model) => takesImages(chosenModel(settings, { model })));
  imageOffers.set(settings, images);
  return images;
}

/** What a prompt to this session may hold: a model that takes no images gets a mark in place of those of earlier prompts only. */
export function sessionPromptKinds({ settings, identity, chosen }: Pick<Session, 'settings' | 'identity' | 'chosen'>): PromptKinds {
  const kinds = promptKinds(settings, identity.profile);
  const isBlind = kinds.images && !takesImages(chosenModel(settings, chosen.choices));
  return isBlind ? { ...kinds, blindModel: chosenModelName(settings, chosen.choices) } : kinds;
}

/**
 * @throws ServerError UNSUPPORTED_CONTENT for kinds that initialize does not advertise or the chosen model does not take, INVALID_PARAMS for an image that cannot be
 * used; EMPTY_PROMPT when nothing but blank text is left (it would start no work, so no turn would ever answer)
 */
export function promptContent(blocks: readonly ContentBlock[], kinds: PromptKinds): PromptBlock[] {
  const intake = { ...kinds, taken: new ImageIntake(), attached: { left: mostAttachedChars } };
  const content = blocks.map((block, index) => promptBlock(block, index, intake));
  const saysSomething = content.some((block) => block.type !== 'text' || block.text.trim() !== '');
  if (!saysSomething) throw new ServerError('EMPTY_PROMPT', 'The prompt holds no text and no resource link.');
  return content;
}

interface Intake extends PromptKinds {
  readonly taken: ImageIntake;
  readonly attached: { left: number };
}

function promptBlock(block: ContentBlock, index: number, intake: Intake): PromptBlock {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'resource_link':
      return { type: 'resource_link', uri: block.uri, name: block.name };
    case 'image':
      if (!intake.images) throw unsupported(index, 'image', intake);
      if (intake.blindModel !== undefined) throw blind(index, intake.blindModel);
      return intake.taken.take(block, index);
    case 'resource':
      if (!intake.resources) throw unsupported(index, 'resource', intake);
      if (!('text' in block.resource)) throw unsupported(index, 'resource with a blob', intake);
      return attached(block.resource, intake);
    case 'audio':
      throw unsupported(index, 'audio', intake);
    default:
      return block satisfies never;
  }
}

function blind(index: number, model: string): ServerError {
  const message = `prompt[${index}] is an image, and the chosen model ${model} takes none. Choose another one with /model, or send the prompt without images.`;
  return new ServerError('UNSUPPORTED_CONTENT', message, { data: { index, model } });
}

function unsupported(index: number, came: string, { images, resources }: PromptKinds): ServerError {
  const expected = ['text', 'resource_link', ...(resources ? ['resource with text'] : []), ...(images ? ['image'] : [])];
  const message = `prompt[${index}] is of a kind that this server does not take: ${came}. It takes ${expected.join(', ')}.`;
  return new ServerError('UNSUPPORTED_CONTENT', message, { data: { index, expected } });
}

function attached(
  { uri, text, mimeType }: { readonly uri: string; readonly text: string; readonly mimeType?: string | null },
  intake: Intake,
): PromptResource {
  const kept = clipped(text, Math.min(mostResourceChars, intake.attached.left));
  intake.attached.left = Math.max(0, intake.attached.left - kept.length);
  return { type: 'resource', uri, text: kept, ...(typeof mimeType === 'string' ? { mimeType } : {}) };
}

function clipped(text: string, limit: number): string {
  if (text.length <= limit) return text;
  // Never half of a character.
  const end = /[\ud800-\udbff]/.test(text.charAt(limit - 1)) ? limit - 1 : limit;
  return `${text.slice(0, end)}\n… (cut here: ${text.length} characters in all)`;
}
