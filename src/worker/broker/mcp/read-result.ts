/**
 * What a tool call gave, as text for the model: what is not text is named, and written to a file where it can be.
 */
import { ImageFiles } from '../subagents/image-files.ts';
import { OutputCapture } from '../output-capture.ts';
import { SpillFile } from '../spill-file.ts';

/** Bytes of a result that the model gets to see, as with commands. */
const keptBytes = 64_000;
const spillMaxBytes = 64 * 1024 * 1024;
const mostBlocks = 1000;

export interface ResultText {
  readonly text: string;
  readonly isError: boolean;
}

/** `spillDir` is absolute; made when first needed. Never rejects for what the result holds. */
export async function readResult(result: Readonly<Record<string, unknown>>, spillDir: string): Promise<ResultText> {
  const text = await resultText(result, spillDir);
  return { text: await bounded(text === '' ? '(no output)' : text, spillDir), isError: result['isError'] === true };
}

async function resultText(result: Readonly<Record<string, unknown>>, spillDir: string): Promise<string> {
  const { content, structuredContent } = result;
  const blocks = Array.isArray(content) ? content.slice(0, mostBlocks) : [];
  const parts = await blockTexts(blocks, spillDir);
  // A server says the same once more as text, for those who do not know the structured form.
  const hasText = blocks.some((block) => record(block)['type'] === 'text');
  if (structuredContent !== undefined && !hasText) parts.push(jsonText(structuredContent));
  if (Array.isArray(content) && content.length > mostBlocks) parts.push(`[${content.length - mostBlocks} further parts were left out]`);
  return parts.join('\n');
}

async function blockTexts(blocks: readonly unknown[], spillDir: string): Promise<string[]> {
  const files = new ImageFiles(spillDir);
  const texts = blocks.map((value, index) => {
    const block = record(value);
    const media = mediaOf(block);
    if (media === undefined) return blockText(block);
    files.save(media.data, media.mimeType, (saved) => {
      if (saved.kind === 'image') texts[index] = `[${media.what} ${saved.mimeType}, ${saved.bytes} bytes, in ${saved.path}]`;
    });
    return `[${media.what} ${media.mimeType}, left out]`;
  });
  await files.settled();
  return texts;
}

interface Media {
  readonly what: string;
  readonly data: string;
  readonly mimeType: string;
}

function mediaOf(block: Readonly<Record<string, unknown>>): Media | undefined {
  const { type, data, mimeType } = block;
  if ((type === 'image' || type === 'audio') && typeof data === 'string')
    return { what: type, data, mimeType: word(mimeType, 'of unknown kind') };
  const { blob, uri, mimeType: kind } = record(block['resource']);
  if (type === 'resource' && typeof blob === 'string') {
    return { what: `resource ${word(uri, 'without a URI')}`, data: blob, mimeType: word(kind, 'of unknown kind') };
  }
  return undefined;
}

function blockText(block: Readonly<Record<string, unknown>>): string {
  const { type, text } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? text : '';
    case 'resource': {
      const resource = record(block['resource']);
      const body = typeof resource['text'] === 'string' ? resource['text'] : '';
      return `[resource ${word(resource['uri'], 'without a URI')}]\n${body}`;
    }
    case 'resource_link':
      return `[resource ${word(block['name'], 'without a name')}: ${word(block['uri'], 'without a URI')}]`;
    default:
      return `[a part of the kind ${word(type, 'unknown')}, left out]`;
  }
}

/** Head and tail of a long text; the whole of it goes to a file. */
async function bounded(text: string, spillDir: string): Promise<string> {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= keptBytes) return text;
  const capture = new OutputCapture(keptBytes, new SpillFile(spillDir, spillMaxBytes));
  await capture.write(bytes);
  const { text: shown, totalBytes, spillPath } = await capture.finish();
  const where = spillPath === undefined ? '' : `; all of it is in ${spillPath}`;
  return `${shown}\n[result truncated: ${totalBytes} bytes in all${where}]`;
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}

function word(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value.slice(0, 500).replaceAll(/\s+/g, ' ') : otherwise;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
