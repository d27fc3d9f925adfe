/** Where this package lies and which version it is; both from the `package.json` above this file. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ownName = 'dsh-acp';

interface OwnPackage {
  readonly root: string;
  readonly version: string;
}

function readOwn(directory: string): OwnPackage | undefined {
  try {
    const parsed: unknown = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    const { name, version } = parsed as { name?: unknown; version?: unknown };
    return name === ownName && typeof version === 'string' ? { root: directory, version } : undefined;
  } catch {
    return undefined; // No package.json in this folder: look one higher.
  }
}

let found: OwnPackage | undefined;

function ownPackage(): OwnPackage {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (found === undefined) {
    found = readOwn(directory);
    const parent = dirname(directory);
    if (found === undefined && parent === directory)
      throw new Error(`the package.json of ${ownName} is missing; install the package again`);
    directory = parent;
  }
  return found;
}

/** Absolute path of the folder that holds `dist/` and `examples/`. */
export function packageRoot(): string {
  return ownPackage().root;
}

export function packageVersion(): string {
  return ownPackage().version;
}
