/**
 * What all charts share: pictures as plain data, the colours of both schemes, letters, numbers.
 *
 * Nothing here asks for the time, the machine or chance: the same data gives the same bytes.
 */

/** A drawing without its frame: it stands in a page, in a file of its own, or beside others in a larger one. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** What it shows, in a few words. */
  readonly title: string;
  /** The same data in a sentence or two, for those who do not see it. */
  readonly desc: string;
  readonly body: string;
}

/** For a page that has {@link chartStyle} in its head. */
export function inlineSvg(picture: Picture): string {
  return framed(picture, '');
}

/** With its own style and background, for GitHub and the like. */
export function svgFile(picture: Picture): string {
  return `${framed(picture, `<style>${chartStyle()}</style><rect class="page" width="100%" height="100%" rx="6"/>`)}\n`;
}

function framed({ width, height, title, desc, body }: Picture, before: string): string {
  const id = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  const head = `<title id="t-${id}">${escaped(title)}</title><desc id="d-${id}">${escaped(desc)}</desc>`;
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" class="chart" ${size} role="img" aria-labelledby="t-${id} d-${id}">${head}${before}${body}</svg>`;
}

/** Rows of `columns` pictures below a common title. */
export function inRows(pictures: readonly Picture[], columns: number, { title, desc }: Pick<Picture, 'title' | 'desc'>): Picture {
  const headHeight = 44;
  const columnWidth = Math.max(...pictures.map(({ width }) => width));
  let top = headHeight;
  let body = `<text class="head" x="16" y="28">${escaped(title)}</text>`;
  for (let start = 0; start < pictures.length; start += columns) {
    const row = pictures.slice(start, start + columns);
    for (const [index, picture] of row.entries()) body += `<g transform="translate(${index * columnWidth} ${top})">${picture.body}</g>`;
    top += Math.max(...row.map(({ height }) => height));
  }
  return { width: columnWidth * Math.min(columns, pictures.length), height: top, title, desc, body };
}

/** Of the letters of a title, at most, in the mean. */
const boldCharWidth = 7;

export function text(
  content: string,
  x: number,
  y: number,
  { kind = '', anchor = 'start', within }: { kind?: string; anchor?: string /** Pixels: longer is drawn closer. */; within?: number } = {},
): string {
  const isLong = within !== undefined && content.length * boldCharWidth > within;
  const squeezed = isLong ? ` textLength="${at(within)}" lengthAdjust="spacingAndGlyphs"` : '';
  const attributes = `${kind === '' ? '' : ` class="${kind}"`}${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}${squeezed}`;
  return `<text x="${at(x)}" y="${at(y)}"${attributes}>${escaped(content)}</text>`;
}

export function line(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}"/>`;
}

/** A place in a picture; a tenth of a pixel is as good as any. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Three digits, with k and M: `0.05`, `1.31`, `12.4`, `950`, `40k`, `1.5M`. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 999_500) return `${trimmed(value / 1e6)}M`;
  if (Math.abs(value) >= 9999.5) return `${trimmed(value / 1e3)}k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  return Math.abs(value) >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** `1.31 ×`, with two digits below ten. */
export function times(ratio: number): string {
  return `${ratio < 10 ? ratio.toFixed(2) : short(ratio)} ×`;
}

export function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

const light = '--page:#fff;--ink:#1f2328;--dim:#59636e;--grid:#dfe4ea;--ours:#0969da;--less:#1a7f37;--more:#bc4c00;--floor:#8c959f';
const dark = '--page:#0d1117;--ink:#e6edf3;--dim:#9198a1;--grid:#2a3038;--ours:#4493f8;--less:#3fb950;--more:#db6d28;--floor:#767e88';

/** Colours and letters; `:root` is the page, or a picture that is a file of its own. */
export function chartStyle(): string {
  return [
    `:root{${light}}@media(prefers-color-scheme:dark){:root{${dark}}}`,
    '.chart text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--ink)}',
    '.chart .head{font-size:16px;font-weight:600}.chart .name{font-size:13px;font-weight:600}.chart .dim{fill:var(--dim)}.chart .small{font-size:11px;fill:var(--dim)}',
    '.chart .label{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}',
    '.chart .bad{fill:var(--more);font-weight:600}.chart .good{fill:var(--less)}',
    '.page{fill:var(--page)}.grid{stroke:var(--grid)}.axis{stroke:var(--dim)}',
    '.one{stroke:var(--ink);stroke-width:1.5}.mark{stroke:var(--more);stroke-width:1.5;stroke-dasharray:4 3}',
    '.bar-ours{fill:var(--ours)}.bar-less{fill:var(--less)}.bar-more{fill:var(--more)}.spread{stroke:var(--ink);stroke-width:1.5}',
    '.ours{fill:none;stroke:var(--ours);stroke-width:2}.beside{fill:none;stroke:var(--floor);stroke-width:1.5}',
    '.p95{stroke-dasharray:7 4}.p99{stroke-dasharray:2 3}.dot{fill:var(--ours)}.dot-beside{fill:var(--floor)}',
    '.fit{stroke:var(--ours);stroke-width:2;fill:none}.guide{stroke:var(--dim);stroke-width:1.2;stroke-dasharray:5 4;fill:none}',
  ].join('');
}
