/**
 * A flame graph as one small SVG without scripts: the root at the bottom, a box's width its share of the samples, its tooltip the rest.
 * The same tree gives the same bytes.
 */
import { type CallNode, placeOf } from './call-tree.ts';
import type { SourceFrame } from './source-names.ts';

const width = 1200;
const rowHeight = 17;
const side = 10;
const headHeight = 52;
/** Narrower boxes are left out: 0.3 % of all samples. */
const leastShare = 0.003;
const letterWidth = 6.7;

interface Box {
  readonly node: CallNode;
  readonly x: number;
  readonly depth: number;
}

const kinds = ['main', 'worker', 'shared', 'package', 'node', 'v8'] as const;
type Kind = (typeof kinds)[number];

const labels: Readonly<Record<Kind, string>> = {
  main: 'src/main',
  worker: 'src/worker',
  shared: 'src/shared',
  package: 'packages',
  node: 'node',
  v8: 'V8: collecting garbage, compiling, native code',
};

export function flameSvg(title: string, tree: CallNode): string {
  const boxes = placed(tree);
  const depth = Math.max(...boxes.map((box) => box.depth)) + 1;
  const height = headHeight + depth * rowHeight + side;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style()}</style>`,
    `<rect class="page" width="100%" height="100%"/>`,
    `<text x="${side}" y="20" class="head">${escaped(title)}</text>`,
    ...legend(),
    ...boxes.map((box) => drawn(box, tree.total, height)),
    '</svg>\n',
  ].join('\n');
}

function placed(tree: CallNode): Box[] {
  const boxes: Box[] = [];
  const place = (node: CallNode, x: number, depth: number): void => {
    boxes.push({ node, x, depth });
    let at = x;
    // By name, as the order of time is lost anyway: the same functions stand at the same places in two graphs.
    for (const [, child] of [...node.children].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (child.total / tree.total >= leastShare) place(child, at, depth + 1);
      at += child.total;
    }
  };
  place(tree, 0, 0);
  return boxes;
}

function drawn({ node, x, depth }: Box, all: number, height: number): string {
  const scale = (width - 2 * side) / Math.max(1, all);
  const left = side + x * scale;
  const wide = node.total * scale;
  const top = height - side - (depth + 1) * rowHeight;
  const percent = (count: number): string => `${((count * 100) / Math.max(1, all)).toFixed(1)} %`;
  const tip = `${placeOf(node.frame)}: ${percent(node.total)}, itself ${percent(node.self)}`;
  const rect = `<rect class="${kindOf(node.frame)}" x="${left.toFixed(1)}" y="${top}" width="${Math.max(0.5, wide - 0.5).toFixed(1)}" height="${rowHeight - 1}"/>`;
  const label = labelOf(node.frame, wide);
  const text = label === '' ? '' : `<text x="${(left + 3).toFixed(1)}" y="${top + 12}">${escaped(label)}</text>`;
  return `<g><title>${escaped(tip)}</title>${rect}${text}</g>`;
}

function labelOf({ name, file }: SourceFrame, wide: number): string {
  const room = Math.floor((wide - 6) / letterWidth);
  if (room < 3) return '';
  const last = file.slice(file.lastIndexOf('/') + 1);
  const whole = file === '' ? name : `${name} · ${last}`;
  if (whole.length <= room) return whole;
  return name.length <= room ? name : `${name.slice(0, room - 1)}…`;
}

function kindOf({ file, owner }: SourceFrame): Kind {
  if (owner === 'V8' || owner === 'native') return 'v8';
  if (owner === 'node') return 'node';
  if (owner !== 'dsh-acp') return 'package';
  if (file.startsWith('src/shared/')) return 'shared';
  return file.startsWith('src/worker/') ? 'worker' : 'main';
}

function legend(): string[] {
  let x = side;
  return kinds.map((kind) => {
    const item = `<rect class="${kind}" x="${x}" y="30" width="12" height="12"/><text x="${x + 17}" y="40" class="legend">${labels[kind]}</text>`;
    x += 17 + labels[kind].length * 6.6 + 18;
    return item;
  });
}

/** Dark letters on light boxes in both schemes; only the page changes. */
function style(): string {
  return [
    'text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}',
    '.head{font:600 14px system-ui,sans-serif}.legend{font:12px system-ui,sans-serif}',
    '.page{fill:#fff}.main{fill:#f2a65e}.worker{fill:#f4c95d}.shared{fill:#e7e08b}.package{fill:#9cc9e8}.node{fill:#a9d6a5}.v8{fill:#cfcfcf}',
    '@media(prefers-color-scheme:dark){.page{fill:#0d1117}.head,.legend{fill:#e6edf3}}',
  ].join('');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
