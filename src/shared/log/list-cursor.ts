/**
 * The place in the list of sessions where a page ended: time of the last change, then id. Opaque to clients.
 */
import { ServerError } from '../errors.ts';
import { isSessionId } from './session-paths.ts';

export interface ListPlace {
  /** Whole epoch milliseconds. */
  readonly updatedAt: number;
  readonly id: string;
}

export function encodeCursor(place: ListPlace): string {
  return Buffer.from(`${place.updatedAt}/${place.id}`).toString('base64url');
}

/** @throws ServerError INVALID_PARAMS when the text is no cursor of ours */
export function decodeCursor(cursor: string): ListPlace {
  const [time = '', id] = cursor.length > 128 ? [] : Buffer.from(cursor, 'base64url').toString('latin1').split('/', 2);
  const place = { updatedAt: Number(time), id };
  if (!/^\d{1,16}$/.test(time) || !isSessionId(place.id) || encodeCursor({ updatedAt: place.updatedAt, id: place.id }) !== cursor) {
    throw new ServerError('INVALID_PARAMS', 'cursor: expected the nextCursor of an earlier page, unchanged.', {
      data: { field: 'cursor' },
    });
  }
  return { updatedAt: place.updatedAt, id: place.id };
}

/** Newest first; equal times by id, so that the order is total. */
export function compareNewestFirst(a: ListPlace, b: ListPlace): number {
  return b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
