/** Colours of a terminal, or none: a pipe gets plain text. */
import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'blue';

/** Wraps a text that holds no escape sequences of its own. */
export type Paint = (style: Style, text: string) => string;

export const plain: Paint = (_style, text) => text;

/** Each line is wrapped on its own, so that a pager may cut between lines. */
export const coloured: Paint = (style, text) =>
  text
    .split('\n')
    .map((line) => (line === '' ? line : styleText(style, line, { validateStream: false })))
    .join('\n');
