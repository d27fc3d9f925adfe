/**
 * A glob as a regular expression over paths with `/`: for policies, and for the walk that stands in when ripgrep is missing. Pure.
 */
const maxAlternatives = 64;

/**
 * `*`, `**`, `?`, `[a-z]`, `[!a-z]`, `{a,b}` and `\x`. A pattern without a slash matches the last name at any depth.
 *
 * @returns `undefined` when the pattern is not a valid glob
 */
export function globPattern(pattern: string): RegExp | undefined {
  const own = pattern.replace(/^\.?\//, '');
  const source = translate(own);
  if (source === undefined) {
    return undefined;
  }
  const anchored = pattern.includes('/') ? source : `(?:[^]*/)?${source}`;
  try {
    return new RegExp(`^${anchored}$`, 'u');
  } catch {
    // A range such as [z-a].
    return undefined;
  }
}

function translate(glob: string): string | undefined {
  let source = '';
  let depth = 0;
  let alternatives = 0;
  for (let at = 0; at < glob.length; ) {
    const piece = /^(?:\*\*\/|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\[^]|[^])/u.exec(glob.slice(at))?.[0] ?? '';
    at += piece.length;
    if (piece === '**/') {
      source += '(?:[^]*/)?';
    } else if (piece.startsWith('*')) {
      source += piece.length > 1 ? '[^]*' : '[^/]*';
    } else if (piece === '?') {
      source += '[^/]';
    } else if (piece.startsWith('[') && piece.length > 1) {
      source += characterClass(piece);
    } else if (piece === '{') {
      depth += 1;
      source += '(?:';
    } else if (piece === '}' && depth > 0) {
      depth -= 1;
      source += ')';
    } else if (piece === ',' && depth > 0) {
      alternatives += 1;
      source += '|';
    } else {
      source += literal(piece.startsWith('\\') && piece.length > 1 ? piece.slice(1) : piece);
    }
  }
  return depth === 0 && alternatives <= maxAlternatives ? source : undefined;
}

function characterClass(piece: string): string {
  const negated = piece[1] === '!' || piece[1] === '^';
  const members = piece.slice(negated ? 2 : 1, -1).replace(/[\\\]^[&~|]/g, '\\$&');
  return negated ? `(?!/)[^${members}]` : `[${members}]`;
}

function literal(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/g, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`);
}
