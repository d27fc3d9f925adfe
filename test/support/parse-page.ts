/**
 * Reads a page of ours with a real HTML parser, as a browser would, so that a test sees what the page says and not how it is written.
 */
import { type DefaultTreeAdapterTypes, parse } from 'parse5';

type Node = DefaultTreeAdapterTypes.Node;
export type Element = DefaultTreeAdapterTypes.Element;

export interface Page {
  /** Mistakes that the parser had to mend. */
  readonly errors: readonly string[];
  readonly elements: readonly Element[];
  /** What a person reads: parts that stand apart are parted by a blank. */
  readonly text: string;
  /** The same, every character as it is. */
  readonly raw: string;
}

export function parsePage(html: string): Page {
  const errors: string[] = [];
  const root = parse(html, { onParseError: ({ code, startLine, startCol }) => errors.push(`${code} at ${startLine}:${startCol}`) });
  const elements: Element[] = [];
  visit(root, (node) => {
    if ('tagName' in node) elements.push(node);
  });
  const body = elements.find(({ tagName }) => tagName === 'body')!;
  return { errors, elements, text: wordsOf(body), raw: textOf(body) };
}

/** The text below a node. Marks of odd characters are put back into the characters that they stand for. */
export function textOf(node: Node): string {
  if ('value' in node) return node.value;
  if (!('childNodes' in node)) return '';
  const text = node.childNodes.map(textOf).join('');
  return 'tagName' in node && node.tagName === 'b' && attributeOf(node, 'class') === 'c' ? charOf(text) : text;
}

/** The same as words: parts that stand apart on the page stand apart here. */
export function wordsOf(node: Node): string {
  if (node.nodeName === 'style' || node.nodeName === 'script') return '';
  const inner = 'childNodes' in node ? node.childNodes.map(wordsOf).join(' ') : textOf(node);
  return inner.replaceAll(/\s+/g, ' ').trim();
}

export function attributeOf(element: Element, name: string): string | undefined {
  return element.attrs.find((attribute) => attribute.name === name)?.value;
}

/** Elements below a node with a class. */
export function withClass(page: Page, name: string): Element[] {
  return page.elements.filter((element) => (attributeOf(element, 'class') ?? '').split(' ').includes(name));
}

const controlNames = ['NUL', 'SOH', 'STX', 'ETX', 'EOT', 'ENQ', 'ACK', 'BEL', 'BS', 'TAB', 'LF', 'VT', 'FF', 'CR', 'SO', 'SI'];
const moreNames = ['DLE', 'DC1', 'DC2', 'DC3', 'DC4', 'NAK', 'SYN', 'ETB', 'CAN', 'EM', 'SUB', 'ESC', 'FS', 'GS', 'RS', 'US'];

/** The character that a sign (`ESC`, `U+202E`) stands for. */
export function charOf(sign: string): string {
  if (sign.startsWith('U+')) return String.fromCodePoint(Number.parseInt(sign.slice(2), 16));
  const code = [...controlNames, ...moreNames].indexOf(sign);
  if (code < 0 && sign !== 'DEL') throw new Error(`no such sign: ${sign}`);
  return sign === 'DEL' ? '\u007f' : String.fromCodePoint(code);
}

function visit(node: Node, onNode: (node: Node) => void): void {
  onNode(node);
  if ('childNodes' in node) for (const child of node.childNodes) visit(child, onNode);
}
