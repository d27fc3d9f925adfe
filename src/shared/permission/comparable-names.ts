/**
 * Names of a path as a forgiving file system would compare them: case, trailing dots and ignorable characters do not count.
 * For lists of files that are known by name. Pure.
 */

/** HFS+ ignores these in names: with one of them inside, `.git` is still `.git` there. */
const ignorable = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

export function comparableNames(path: string): string[] {
  return path
    .split(/[\\/]/)
    .filter((name) => name !== '' && name !== '.')
    .map((name) =>
      name
        .normalize('NFKC')
        .replace(ignorable, '')
        .replace(/[. ]+$/, '')
        .toLowerCase(),
    );
}

/** The names with a slash before each. A search asks about each file of a tree, so plain paths go a short way. */
export function comparablePath(path: string): string {
  const isPlain = /^[\0-\x7f]*$/.test(path) && !/\\|[. /](?:\/|$)/.test(path);
  return isPlain && path.startsWith('/') ? path.toLowerCase() : `/${comparableNames(path).join('/')}`;
}

/** Whether the names hold the sequence, one right behind the other, at any depth. */
export function hasSequence(names: readonly string[], sequence: readonly string[]): boolean {
  return names.some((_, start) => startsWith(names.slice(start, start + sequence.length), sequence));
}

export function startsWith(names: readonly string[], sequence: readonly string[]): boolean {
  return sequence.every((name, index) => names[index] === name);
}

/** A list written as one text, for example `.env .envrc`. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** The same, each word a path of one or more names. */
export function sequences(text: string): string[][] {
  return words(text).map((path) => path.split('/'));
}
