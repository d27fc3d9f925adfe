/**
 * Where bytes of UTF-8 can be cut without breaking a character. Bytes that are no UTF-8 at all are left to the decoder,
 * which puts U+FFFD in their place.
 */

/** How many bytes at the end belong to a character that has not come to its end: 0 to 3. */
export function unfinishedTail(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte <= 0xf4 && length > back ? back : 0;
  }
  return 0;
}

/** How many bytes at the start are the rest of a character that began before: 0 to 3. */
export function orphanedHead(bytes: Buffer): number {
  let count = 0;
  while (count < Math.min(3, bytes.length) && ((bytes[count] ?? 0) & 0b1100_0000) === 0b1000_0000) count += 1;
  return count;
}
