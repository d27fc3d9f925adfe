/**
 * Tells whether something that was built still belongs to the sources it was built from.
 *
 * A stamp is the hash of every file the build reads. It is kept beside what was built, and compared, never trusted by
 * time: a checkout may set any modification time.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Whether the module with this URL is the program that was started (which may have been named through a link). */
export function isMain(url) {
  const started = process.argv[1];
  return started !== undefined && existsSync(started) && pathToFileURL(realpathSync(started)).href === url;
}

function* filesUnder(path) {
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) {
    yield path;
    return;
  }
  const entries = readdirSync(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.isDirectory()) yield* filesUnder(join(path, entry.name));
    else if (entry.isFile()) yield join(path, entry.name);
  }
}

/** Hash of the given files and folders (paths from the project's root), names and contents. */
export function sourceHash(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const path of paths) {
    for (const file of filesUnder(join(root, path))) {
      const content = readFileSync(file);
      hash.update(`\0${file.slice(root.length)}\0${content.length}\0`).update(content);
    }
  }
  return hash.digest('hex');
}

export function isFresh(stampFile, hash) {
  try {
    return readFileSync(join(root, stampFile), 'utf8') === hash;
  } catch {
    return false; // No stamp: never built.
  }
}

export function writeStamp(stampFile, hash) {
  const path = join(root, stampFile);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, hash);
}

/** What `dist/` is made from. */
export const distInputs = ['src', 'package.json', 'package-lock.json', 'scripts/build.mjs'];
export const distStamp = 'dist/.stamp';
