/**
 * Where a path really leads, also when nothing is there yet. A permission is decided on this, so that neither `..` nor a
 * symbolic link, whole or dangling, makes an outside file look like one of the workspace.
 */
import { lstat, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

const maxDanglingLinks = 40;

/**
 * Resolves every link of an absolute path. What does not exist is kept as it is behind the deepest part that does.
 * Undefined when the place cannot be known: a loop, a directory that may not be searched, a NUL.
 */
export async function canonicalPath(path: string): Promise<string | undefined> {
  let current = resolve(path);
  let missing: string[] = [];
  let linksLeft = maxDanglingLinks;
  for (;;) {
    const real = await tryPath(() => realpath(current));
    if (real.kind === 'found') return join(real.value, ...missing);
    if (real.kind === 'unknown' || linksLeft === 0) return undefined;
    // The end of a dangling link is where a write through it would land.
    const target = await linkTarget(current);
    if (target.kind === 'unknown') return undefined;
    if (target.kind === 'found') {
      const parent = await tryPath(() => realpath(dirname(current)));
      if (parent.kind !== 'found') return undefined;
      current = resolve(parent.value, target.value);
      linksLeft -= 1;
    } else {
      missing = [basename(current), ...missing];
      current = dirname(current);
    }
  }
}

type Attempt = { readonly kind: 'found'; readonly value: string } | { readonly kind: 'missing' | 'unknown' };

async function linkTarget(path: string): Promise<Attempt> {
  const entry = await tryPath(async () => ((await lstat(path)).isSymbolicLink() ? await readlink(path) : ''));
  return entry.kind === 'found' && entry.value === '' ? { kind: 'missing' } : entry;
}

async function tryPath(read: () => Promise<string>): Promise<Attempt> {
  try {
    return { kind: 'found', value: await read() };
  } catch (error) {
    return { kind: (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'unknown' };
  }
}
