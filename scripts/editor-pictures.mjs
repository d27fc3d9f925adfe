/**
 * Makes the pictures of docs/pictures: two sessions over the built server, their pages by `dsh-acp sessions show --html`, and headless
 * Chromium. Usage: `npm run compile && npm run build && node scripts/editor-pictures.mjs [directory]`.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { root } from './source-stamp.mjs';

const build = (path) => import(join(root, 'build', path));
const { playEditorScene } = await build('test/support/editor-scene.js');
const { makePicture, pictures } = await build('test/support/editor-pictures.js');
const { chromiumPath, pngSize } = await build('test/support/chromium.js');

if (chromiumPath === undefined) throw new Error('Chromium is not installed: no pictures can be made');
const out = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const dir = mkdtempSync(join(tmpdir(), 'dsh-acp-pictures-'));
const { stateDir, scripted, recorded } = await playEditorScene(dir);

function pageOf(id) {
  const words = [join(root, 'dist/main/cli.js'), 'sessions', 'show', id, '--html', '--state-dir', stateDir];
  const { stdout, status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const pages = { scripted: pageOf(scripted), recorded: pageOf(recorded) };
mkdirSync(out, { recursive: true });
for (const spec of pictures) {
  const file = await makePicture(spec, pages, dir);
  copyFileSync(file, join(out, `${spec.name}.png`));
  console.log(`${spec.name}.png ${JSON.stringify(pngSize(file))}`);
}
rmSync(dir, { recursive: true, force: true });
