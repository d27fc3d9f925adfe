/**
 * Text of the workspace with nothing hidden in it: characters that show nothing, or that turn the direction of others, are
 * written out as their code points. What a person sees in a file is then what the model is given. Pure.
 */

/** Of a longer run the rest is counted: a file of tags must not fill the model's context. */
const shownOfRun = 8;

/** Line ends become LF. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(eachHidden(), (match, held: string | undefined) => held ?? writeOut(match));
}

/** The same on one line: for a name or a path. */
export function visibleLine(text: string): string {
  return visibleText(text).replace(/[\t\n]/g, codePointOf);
}

function writeOut(run: string): string {
  const characters = Array.from(run);
  const shown = characters.slice(0, shownOfRun).map(codePointOf).join('');
  const left = characters.length - shownOfRun;
  return left > 0 ? `${shown}‹and ${left} more hidden characters›` : shown;
}

function codePointOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;
}

let pattern: RegExp | undefined;

/** Made when it is first used: the classes of Unicode would take half a millisecond of each thread's start. */
function eachHidden(): RegExp {
  return (pattern ??= new RegExp(`(?<joint>${joint().source})|${hiddenRun().source}`, 'gu'));
}

/** What holds an emoji or a keycap together hides nothing. */
function joint(): RegExp {
  return /(?<=[\d#*])\uFE0F(?=\u20E3)|(?<=\p{Extended_Pictographic})\uFE0F(?:\u200D(?=\p{Extended_Pictographic}))?|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}])\u200D(?=\p{Extended_Pictographic})/u;
}

/**
 * Controls but for tab and line feed, format characters (bidi marks, zero-width ones, tags), what Unicode says may be left
 * out when shown (variation selectors and fillers among them), halves of pairs, and the other two line separators.
 */
function hiddenRun(): RegExp {
  return /(?:(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{DI}\u2028\u2029])+/u;
}
