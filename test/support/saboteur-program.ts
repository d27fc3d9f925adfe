/**
 * The saboteur's server as a few files. Loaded file by file each of its processes and threads reads some hundred modules, for half a
 * second of a core a server; so what was compiled is bundled first, by the first test after each compilation.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './server-process.ts';

const built = join(projectRoot, 'build');
const sources = ['src', 'test/support'].map((folder) => join(built, folder));

/** Bundles of earlier compilations go after this time: a test that has begun may still start servers of them. */
const keptMs = 600_000;

/** When the newest of the compiled files was written, in ms. */
function newestChange(): number {
  const files = sources.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))));
  return Math.max(...files.filter((file) => file.endsWith('.js')).map((file) => statSync(file).mtimeMs));
}

function bundlesIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => /^saboteur-\d+$/.test(name));
}

const compiledAt = (name: string): number => Number(name.slice('saboteur-'.length));

async function bundle(name: string): Promise<void> {
  const { build } = await import('esbuild');
  const unfinished = join(built, `${name}.${process.pid}`);
  await build({
    entryPoints: ['serve-main', 'saboteur-thread', 'saboteur-broker'].map((entry) => join(built, `test/support/${entry}.js`)),
    outdir: unfinished,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: ['piscina', '@vscode/ripgrep', 'prom-client'],
    mainFields: ['module', 'main'],
    banner: { js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);` },
    logLevel: 'error',
  });
  try {
    renameSync(unfinished, join(built, name));
  } catch {
    // Another test was quicker; its files are the same.
    rmSync(unfinished, { recursive: true });
  }
}

async function saboteurProgram(): Promise<string> {
  mkdirSync(built, { recursive: true });
  const name = `saboteur-${Math.trunc(newestChange())}`;
  if (!bundlesIn(built).includes(name)) {
    await bundle(name);
    for (const old of bundlesIn(built))
      if (compiledAt(old) < compiledAt(name) - keptMs) rmSync(join(built, old), { recursive: true, force: true });
  }
  return join(built, name, 'serve-main.js');
}

/** The program to start with Node; takes the flags of `dsh-acp serve`. */
export const saboteurMain: string = await saboteurProgram();
