/**
 * What docs/editors.md shows: sessions over the real server, and their pages by the program, with every card. Where Chromium is
 * installed, pictures are taken of them, too.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { chromiumPath, pngSize } from '../support/chromium.ts';
import { makePicture, pictures } from '../support/editor-pictures.ts';
import { playEditorScene } from '../support/editor-scene.ts';
import { type Page, attributeOf, parsePage, withClass, wordsOf } from '../support/parse-page.ts';
import { cliPath, projectRoot } from '../support/server-process.ts';

const scene = await playEditorScene(t.testdir({}));
const htmlOf = (id: string): string =>
  execFileSync(process.execPath, [cliPath, 'sessions', 'show', id, '--html', '--state-dir', scene.stateDir], { encoding: 'utf8' });
const pages = { scripted: htmlOf(scene.scripted), recorded: htmlOf(scene.recorded) };
const cardsOf = (page: Page) => withClass(page, 'tool').map(wordsOf);

t.test('the page of a session shows each kind of card as an editor does', async (t) => {
  const page = parsePage(pages.scripted);
  t.same(page.errors, []);
  const cards = cardsOf(page);
  const card = (pattern: RegExp): void =>
    void t.ok(
      cards.some((text) => pattern.test(text)),
      String(pattern),
    );
  card(/^Read README\.md read done .* 16 lines/);
  card(/^Read src\/stock\.js \(1 - 20\) read done/);
  card(/^Search minimum in src grep done .* src\/stock\.js:12:/);
  card(
    /^node src\/main\.js stock\.csv bash exit 0 .* permission: allow-once by client .* \$ node src\/main\.js stock\.csv hammer .* exit 0$/,
  );
  card(/^node --test --test-reporter=dot bash exit 1 .* exit 1$/);
  card(/^Edit src\/stock\.js edit done .* - \.filter\(\(item\) => item\.quantity < item\.minimum\) \+ \.filter/);
  card(/^Write notes\.md write done .* notes\.md \(new\) \+# Notes/);
  card(/^rm -rf node_modules bash PERMISSION_DENIED permission asked: rm -rf node_modules permission: reject by client/);
  card(/subagent done .* started at self .* ↳ Search toReorder \(completed\) .* ended: completed/);
  for (const words of [
    'plan, 3 of 3 done',
    'model call retried: attempt 1',
    'permission mode: accept-edits',
    'Turn 3',
    'turn ended: completed',
    '; window 0.',
    'undo turns 3 undone',
    'Undone: prompt 3',
    'command /cost',
    'reasoning, 105 characters',
  ])
    t.match(page.text, words);
  const thought = page.elements.find(
    ({ tagName, attrs }) => tagName === 'details' && attrs.some(({ value }) => value.includes('thought')),
  )!;
  t.equal(attributeOf(thought, 'open'), undefined, 'thoughts are folded');
});

t.test('images, priorities and tools of MCP servers are on the page', async (t) => {
  const page = parsePage(pages.recorded);
  t.same(page.errors, []);
  t.match(attributeOf(page.elements.find(({ tagName }) => tagName === 'img')!, 'src'), /^data:image\/png;base64,iVBOR/);
  t.match(
    page.text,
    /plan, 1 of 3 done ☑ Ask the catalogue what the item is called high ▸ Put the name on the page ☐ Tidy up the style sheet low/,
  );
  t.match(page.text, 'MCP server catalogue : connected');
  t.ok(cardsOf(page).some((text) => text.startsWith('catalogue: echo (M6 bolt, zinc-plated, 30 mm) mcp__catalogue__echo done')));
});

t.test('a page needs nothing from elsewhere and runs nothing', async (t) => {
  for (const html of Object.values(pages)) {
    const page = parsePage(html);
    const policy = page.elements.find(
      ({ tagName, attrs }) => tagName === 'meta' && attrs.some(({ value }) => value === 'Content-Security-Policy'),
    )!;
    t.match(attributeOf(policy, 'content'), /^default-src 'none'; style-src 'unsafe-inline'; script-src 'none'; img-src data:;/);
    t.same(
      page.elements.filter(({ tagName }) => ['script', 'link', 'iframe', 'object', 'form'].includes(tagName)),
      [],
    );
    const from = page.elements.flatMap(({ attrs }) => attrs.filter(({ name }) => ['src', 'href'].includes(name)).map(({ value }) => value));
    t.same(
      from.filter((value) => !value.startsWith('data:image/')),
      [],
    );
  }
});

t.test('the committed pictures are those of the list, and small', async (t) => {
  const dir = join(projectRoot, 'docs/pictures');
  const taken = readdirSync(dir).filter((name) => name.endsWith('.png'));
  t.same(taken.sort(), pictures.map(({ name }) => `${name}.png`).sort(), 'node scripts/editor-pictures.mjs makes them anew');
  for (const { name, width, height } of pictures) {
    const size = pngSize(join(dir, `${name}.png`));
    t.match(size, { width, height }, name);
    t.ok(size.bytes <= 150 * 1024, `${name}: ${size.bytes} bytes`);
  }
});

const noChromium = chromiumPath === undefined ? 'Chromium is not installed: no pictures are taken' : false;

t.test('a browser draws the cards, light and dark', { skip: noChromium }, async (t) => {
  const dir = t.testdir({});
  const sizes: number[] = [];
  for (const name of ['edit-light', 'mcp-dark']) {
    const spec = pictures.find((one) => one.name === name)!;
    const size = pngSize(await makePicture(spec, pages, dir));
    t.match(size, { width: spec.width, height: spec.height });
    // An empty page has some 4 KB.
    t.ok(size.bytes > 20 * 1024 && size.bytes < 400 * 1024, `${name}: ${size.bytes} bytes`);
    sizes.push(size.bytes);
  }
  t.not(sizes[0], sizes[1]);
});
