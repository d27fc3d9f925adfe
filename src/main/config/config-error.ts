/** How a wrong setting is reported: which key, what was expected, what came, where, and what may have been meant. */
import { ServerError } from '../../shared/errors.ts';
import { quoted } from '../../shared/quoted.ts';

const shownLength = 80;

export interface WrongSetting {
  readonly key: string;
  readonly expected: string;
  /** Left out for a secret, and where nothing came. */
  readonly came?: unknown;
  /** The flag, the variable or the place in the file. */
  readonly where: string;
  readonly suggestion?: string | undefined;
}

function show(value: unknown): string {
  const text = quoted(value);
  return text.length > shownLength ? `${text.slice(0, shownLength)}…` : text;
}

/** A key that a file made up may hold line ends and what a terminal obeys. */
function shownName(key: string): string {
  return key.length > 2 * shownLength || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(key) ? show(key) : key;
}

/** Makes the CONFIG_INVALID error; its `data` holds the same parts for programs. */
export function configError(wrong: WrongSetting): ServerError {
  const came = wrong.came === undefined ? '' : `, came ${show(wrong.came)}`;
  const suggestion = wrong.suggestion === undefined ? '' : ` Did you mean ${wrong.suggestion}?`;
  return new ServerError('CONFIG_INVALID', `${shownName(wrong.key)}: expected ${wrong.expected}${came} (${wrong.where}).${suggestion}`, {
    data: {
      key: wrong.key,
      expected: wrong.expected,
      where: wrong.where,
      ...(wrong.came === undefined ? {} : { came: show(wrong.came) }),
      ...(wrong.suggestion === undefined ? {} : { suggestion: wrong.suggestion }),
    },
  });
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, substitution));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** The known word nearest to what was written; `undefined` when none is near enough to have been meant. */
export function nearest(written: string, known: readonly string[]): string | undefined {
  if (written.length > shownLength) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(written.length / 3)) + 1;
  for (const word of known) {
    const distance = editDistance(written.toLowerCase(), word.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [word, distance];
  }
  return best;
}
