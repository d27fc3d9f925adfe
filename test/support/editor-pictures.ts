/** The pictures of docs/pictures: which part of which page each of them shows. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PictureSize, takePicture } from './chromium.ts';

export interface PictureSpec extends PictureSize {
  readonly name: string;
  readonly page: 'scripted' | 'recorded';
  /** From the beginning of this turn's first step; the whole page without it. */
  readonly turn?: number;
}

export const pictures: readonly PictureSpec[] = [
  { name: 'cards-light', page: 'scripted', turn: 1, width: 760, height: 980 },
  { name: 'cards-dark', page: 'scripted', turn: 1, width: 760, height: 980, dark: true },
  { name: 'edit-light', page: 'scripted', turn: 2, width: 760, height: 900 },
  { name: 'mcp-dark', page: 'recorded', turn: 0, width: 760, height: 900, dark: true },
  { name: 'subagent-undo-light', page: 'scripted', turn: 3, width: 760, height: 900 },
  { name: 'narrow-light', page: 'scripted', turn: 2, width: 500, height: 900 },
];

/** @param pages HTML of the whole pages; @param dir where the parts and the pictures go */
export async function makePicture(spec: PictureSpec, pages: Readonly<Record<PictureSpec['page'], string>>, dir: string): Promise<string> {
  const [part, file] = [join(dir, `${spec.name}.html`), join(dir, `${spec.name}.png`)];
  writeFileSync(part, partOf(pages[spec.page], spec.turn));
  await takePicture(part, file, spec);
  return file;
}

function partOf(page: string, turn: number | undefined): string {
  if (turn === undefined) return page;
  const main = page.indexOf('<main>') + '<main>'.length;
  const from = page.indexOf('<header class="turn">');
  if (turn === 0) return page.slice(0, main) + page.slice(from);
  const head = page.indexOf(`<h3>Turn ${turn}</h3>`);
  const step = page.indexOf('<p class="step">', head);
  const retry = page.indexOf('<div class="event bad">model call retried', head);
  const start = retry !== -1 && retry < step ? retry : step;
  const next = page.indexOf('<header class="turn">', head);
  return page.slice(0, main) + page.slice(start, next === -1 ? undefined : next);
}
