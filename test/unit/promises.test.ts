/** The table of promises in ARCHITECTURE.md names tests that exist. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../support/server-process.ts';

t.test('each promise names a file that is there', async (t) => {
  const page = readFileSync(join(projectRoot, 'ARCHITECTURE.md'), 'utf8');
  const table = page.split('## Promises and their tests')[1]?.split('\n## ')[0] ?? '';
  const rows = table.split('\n').filter((line) => /^\| (?!promise)(?!---)/.test(line) && !line.startsWith('|---'));
  t.ok(rows.length >= 10, `${rows.length} promises`);
  for (const row of rows) {
    const files = [...row.matchAll(/`(test\/[\w./-]+)`/g)].map(([, path]) => path ?? '');
    t.ok(files.length > 0, `${row.slice(0, 60)} names a test`);
    for (const path of files) t.ok(existsSync(join(projectRoot, path)), path);
  }
});
