/**
 * Makes a place to run the coding tasks in: `node prepare.mjs DIRECTORY` puts each task into a git repository of its own under
 * DIRECTORY/repos, and the two jobs files beside them.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];
if (target === undefined) {
  process.stderr.write('usage: node prepare.mjs DIRECTORY\n');
  process.exit(2);
}

const repos = resolve(target, 'repos');
mkdirSync(repos, { recursive: true });
for (const name of readdirSync(join(here, 'tasks'))) {
  const repo = join(repos, name);
  cpSync(join(here, 'tasks', name), repo, { recursive: true });
  const git = (...args) => execFileSync('git', ['-c', 'user.name=tasks', '-c', 'user.email=tasks@localhost', ...args], { cwd: repo });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'The task as it is given');
}
for (const file of ['model.jsonl', 'scripted.jsonl']) cpSync(join(here, file), resolve(target, file));
