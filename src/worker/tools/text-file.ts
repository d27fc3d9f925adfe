/**
 * Text as files hold it: UTF-8, with or without a byte order mark, with LF or CRLF, or both.
 *
 * Decoding is exact or refused, so that writing a file back never changes a byte nobody asked to change.
 */
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { FsFault } from './fs-fault.ts';

/** Where a NUL is looked for before a file counts as text. */
export const probeBytes = 8192;

const bom = '\uFEFF';

/**
 * @param head the first bytes of the file, at most {@link probeBytes} of them are looked at
 * @throws FsFault FS_NOT_TEXT
 */
export function requireText(head: Buffer, shownPath: string): void {
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) {
    throw new FsFault('FS_NOT_TEXT', `${shownPath} is UTF-16 text; only UTF-8 can be used. Convert it with a command first.`);
  }
  if (head.subarray(0, probeBytes).includes(0)) {
    throw new FsFault('FS_NOT_TEXT', `${shownPath} is not text: it holds NUL bytes. Look at it with a command instead.`);
  }
}

/** Half of a surrogate pair cannot be written as UTF-8; it would silently become another character. */
export function isWritableText(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/**
 * The whole content of an open file.
 *
 * @throws FsFault FS_TOO_LARGE when it is, or grows, over `maxBytes`
 */
export async function readWhole(opened: { handle: FileHandle; stats: Stats }, maxBytes: number, shownPath: string): Promise<Buffer> {
  const { handle, stats } = opened;
  if (stats.size > maxBytes) {
    throw tooLarge(shownPath, maxBytes);
  }
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(1 << 20, stats.size + 1 - total)));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, total);
    if (bytesRead === 0) {
      return Buffer.concat(chunks, total);
    }
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (total > maxBytes) {
      throw tooLarge(shownPath, maxBytes);
    }
  }
}

/** The refusal for a file that cannot be changed as a whole. */
export function tooLarge(shownPath: string, maxBytes: number): FsFault {
  return new FsFault('FS_TOO_LARGE', `${shownPath} is larger than ${maxBytes / (1 << 20)} MiB. Change it with a command instead.`);
}

/** A text file taken apart so that it can be put together again exactly. */
export interface TextContent {
  readonly hasBom: boolean;
  /** Without the BOM, line endings as in the file. */
  readonly raw: string;
}

/** @throws FsFault FS_NOT_TEXT when the bytes are not UTF-8 text */
export function decodeText(bytes: Buffer, shownPath: string): TextContent {
  requireText(bytes, shownPath);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FsFault('FS_NOT_TEXT', `${shownPath} is not valid UTF-8; writing it back would damage it. Change it with a command instead.`);
  }
  return text.startsWith(bom) ? { hasBom: true, raw: text.slice(1) } : { hasBom: false, raw: text };
}

export function encodeText(content: TextContent): Buffer {
  return Buffer.from(content.hasBom ? bom + content.raw : content.raw, 'utf8');
}
