/**
 * Whether a command line is plainly one argv: words of harmless characters with single spaces between them.
 *
 * No parser of a shell, and it must not become one. It knows a few shapes that every shell reads in one way, and refuses
 * the rest: pipes, redirections, variables, globs, escapes, comments, assignments, several lines, several spaces.
 */

/** Longer lines are not looked at. */
const longestCommand = 8_192;
const program = /^[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*$/;
const bareWord = /^[A-Za-z0-9_./=:@%+,-]+$/;
/** The words of the command, quotes taken off; `undefined` when it is anything but plain. */
export function plainArgv(command: string): readonly string[] | undefined {
  if (command === '' || command.length > longestCommand || command.endsWith(' ')) return undefined;
  const words: string[] = [];
  const word = eachWord();
  word.lastIndex = 0;
  while (word.lastIndex < command.length) {
    const found = word.exec(command);
    if (found === null) return undefined;
    const bare = found[3];
    // The first word is the program: not quoted, no assignment, no job.
    if (bare === undefined ? words.length === 0 : !(words.length === 0 ? program : bareWord).test(bare)) return undefined;
    words.push(bare ?? found[1] ?? found[2] ?? '');
  }
  return words;
}

/** Between quotes also spaces, and letters of any script; a shell takes nothing in it for its own. */
const quotedText = String.raw`[\p{L}\p{M}\p{N}_./=:@%+, -]+`;
let pattern: RegExp | undefined;

/** Made when it is first used: the classes of Unicode take a third of a millisecond of a start. */
function eachWord(): RegExp {
  return (pattern ??= new RegExp(`(?:'(${quotedText})'|"(${quotedText})"|([^ '"]+))(?: |$)`, 'uy'));
}

/**
 * Whether the words fit the pattern: word by word, a last `...` for any further ones.
 *
 * @param takesOptions `false`: a word that begins with `*` stands for no option, since one option can make another program of a command
 */
export function matchesArgv(pattern: readonly string[], argv: readonly string[], takesOptions = true): boolean {
  const isOpen = pattern.at(-1) === '...';
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? argv.length < fixed.length : argv.length !== fixed.length) return false;
  return fixed.every((word, index) => {
    const given = argv[index] ?? '';
    return (takesOptions || !word.startsWith('*') || !given.startsWith('-')) && matchesWord(word, given);
  });
}

/** `*` stands for any characters, none too. Time grows with the product of the lengths at most. */
export function matchesWord(pattern: string, text: string): boolean {
  let [at, from] = [0, 0];
  let star = -1;
  let resume = 0;
  while (from < text.length) {
    if (pattern[at] === '*') {
      star = at;
      at += 1;
      resume = from;
    } else if (pattern[at] === text[from]) {
      at += 1;
      from += 1;
    } else if (star >= 0) {
      at = star + 1;
      resume += 1;
      from = resume;
    } else {
      return false;
    }
  }
  return /^\**$/.test(pattern.slice(at));
}
