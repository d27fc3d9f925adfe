/**
 * Checks the images of a prompt before anything is kept of them: one that a provider refuses would be sent again with every
 * later request of its session.
 */
import type { ImageContent } from '@agentclientprotocol/sdk';
import { ServerError } from '../../shared/errors.ts';
import type { PromptImage } from '../../shared/events.ts';

const mebibyte = 1024 * 1024;
/** Decoded bytes. A line of the log has room for a prompt of these. */
const mostImageBytes = 8 * mebibyte;
const mostPromptBytes = 16 * mebibyte;
const mostImages = 32;

/** By what their bytes begin with: what a client calls an image is not always what it is. */
const signatures: readonly { readonly mimeType: string; readonly fits: (bytes: Buffer) => boolean }[] = [
  { mimeType: 'image/png', fits: (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')) },
  { mimeType: 'image/jpeg', fits: (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) },
  { mimeType: 'image/gif', fits: (bytes) => /^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6)) },
  { mimeType: 'image/webp', fits: (bytes) => /^RIFF.{4}WEBP$/s.test(bytes.toString('latin1', 0, 12)) },
];

export const imageTypes: readonly string[] = signatures.map(({ mimeType }) => mimeType);

/** Takes the images of one prompt, in order. */
export class ImageIntake {
  #count = 0;
  #bytes = 0;

  /**
   * @param index of the block in the prompt
   * @throws ServerError UNSUPPORTED_CONTENT for another type of image; INVALID_PARAMS for what is no base64, no image, too large or
   * one too many
   */
  take(block: ImageContent, index: number): PromptImage {
    const { mimeType, data, uri } = block;
    if (!imageTypes.includes(mimeType.toLowerCase())) {
      throw new ServerError(
        'UNSUPPORTED_CONTENT',
        `prompt[${index}] is an image of a type that is not taken; taken are ${imageTypes.join(', ')}.`,
        {
          data: { index, expected: [...imageTypes] },
        },
      );
    }
    this.#count += 1;
    if (this.#count > mostImages) throw invalid(index, `is one image too many: a prompt holds at most ${mostImages}`, mostImages);
    const bytes = decoded(data, index);
    this.#bytes += bytes.length;
    if (this.#bytes > mostPromptBytes) {
      throw invalid(index, `makes the images of the prompt larger than ${mostPromptBytes / mebibyte} MiB together`, mostPromptBytes);
    }
    const found = signatures.find(({ fits }) => fits(bytes));
    if (found === undefined) throw invalid(index, `.data is no image of these types: ${imageTypes.join(', ')}`);
    return { type: 'image', mimeType: found.mimeType, data, ...(typeof uri === 'string' ? { uri } : {}) };
  }
}

function decoded(data: string, index: number): Buffer {
  // What is too long need not be decoded.
  const tooLarge = data.length > Math.ceil(mostImageBytes / 3) * 4;
  const bytes = tooLarge ? undefined : Buffer.from(data, 'base64');
  if (bytes === undefined || bytes.length > mostImageBytes) {
    throw invalid(index, `is an image larger than ${mostImageBytes / mebibyte} MiB`, mostImageBytes);
  }
  // Node skips what it does not know: only what comes out the same again was base64.
  if (bytes.length === 0 || bytes.toString('base64') !== data) throw invalid(index, '.data is not base64 (RFC 4648, with padding)');
  return bytes;
}

function invalid(index: number, what: string, limit?: number): ServerError {
  return new ServerError('INVALID_PARAMS', `prompt[${index}]${what.startsWith('.') ? '' : ' '}${what}.`, {
    data: { field: `prompt[${index}]`, ...(limit === undefined ? {} : { limit }) },
  });
}
