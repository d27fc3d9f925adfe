/**
 * A session's title: the first line of what its user said first. Pure; the list and the live title use the same rule.
 */

const titleLimit = 80;
/** Controls, and the marks that reorder text on a screen. */
// oxlint-disable-next-line no-control-regex -- control characters are what this pattern is for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/g;

/**
 * The first line of `text` that is not blank, on one line, without control characters, at most 80 characters long
 * (an ellipsis shows a cut).
 *
 * @returns undefined when nothing printable is left
 */
export function sessionTitle(text: string): string | undefined {
  // Far more than a title needs, so that a prompt of megabytes is not scanned.
  for (const line of text.slice(0, 16 * 1024).split(/\r\n|[\n\r\u2028\u2029]/)) {
    const clean = line.replace(unprintable, ' ').replace(/\s+/g, ' ').trim();
    if (clean !== '') {
      return shorten(clean);
    }
  }
  return undefined;
}

function shorten(line: string): string {
  const characters = Array.from(line.slice(0, titleLimit * 2 + 2));
  return characters.length <= titleLimit
    ? line
    : `${characters
        .slice(0, titleLimit - 1)
        .join('')
        .trimEnd()}…`;
}
