/**
 * The saboteur's server as a few files. Loaded file by file each of its processes and threads reads some hundred modules, for half a
 * second of a core a server; so what was compiled is bundled first, by the first test after each compilation.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BuildOptions } from 'esbuild';
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

/** As `scripts/build.mjs` makes `dist/`: scripts, whose compiled code V8 gives and takes back. */
async function bundle(name: string): Promise<void> {
  const { build } = await import('esbuild');
  const unfinished = join(built, `${name}.${process.pid}`);
  const common: BuildOptions = {
    outdir: unfinished,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    external: ['piscina', '@vscode/ripgrep', 'prom-client'],
    mainFields: ['module', 'main'],
    minifySyntax: true,
    minifyWhitespace: true,
    charset: 'ascii',
    logLevel: 'error',
  };
  const script: BuildOptions = { ...common, format: 'cjs', outExtension: { '.js': '.cjs' } };
  const entry = (out: string, file: string): { in: string; out: string } => ({ in: join(built, file), out });
  await Promise.all([
    build({
      ...script,
      entryPoints: [
        entry('saboteur-thread', 'src/worker/thread-loader.js'),
        // What the loader loads.
        entry('session-host', 'test/support/saboteur-thread.js'),
        entry('saboteur-broker', 'test/support/saboteur-broker.js'),
      ],
      plugins: [{ name: 'clients-apart', setup: (build) => build.onResolve({ filter: /-client\.js$/ }, clientApart) }],
    }),
    build({
      ...common,
      format: 'esm',
      splitting: true,
      entryPoints: clients.map((client) => join(built, 'src/worker/broker', client)),
      entryNames: '[name]',
      banner: { js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);` },
    }),
    build({
      ...script,
      entryPoints: [entry('program', 'test/support/saboteur-main.js')],
      supported: { 'dynamic-import': false },
      define: { 'import.meta.url': 'programUrl', threadHash: JSON.stringify(`${name}-thread`) },
      banner: { js: `const programUrl = require('node:url').pathToFileURL(__filename).href;` },
    }),
    build({ ...script, entryPoints: [entry('serve-main', 'src/main/start.js')], define: { buildHash: JSON.stringify(name) } }),
  ]);
  for (const file of ['program.cjs', 'session-host.cjs']) asLoadersRead(join(unfinished, file));
  try {
    renameSync(unfinished, join(built, name));
  } catch {
    // Another test was quicker; its files are the same.
    rmSync(unfinished, { recursive: true });
  }
}

/** The same as the build of the program does. */
function asLoadersRead(file: string): void {
  const text = readFileSync(file, 'utf8').replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  writeFileSync(file, `(function (exports, require, module, __filename, __dirname) {${text}\n})`);
}

/** The clients of ACP and MCP, which the broker loads with the first subagent and the first MCP server. */
const clients = ['subagents/acp-client.js', 'mcp/mcp-client.js'];

function clientApart({ path }: { path: string }): { path: string; external: true } | undefined {
  const client = clients.find((one) => one.endsWith(path.slice(path.lastIndexOf('/'))));
  return client === undefined ? undefined : { path: `./${client.slice(client.indexOf('/') + 1)}`, external: true };
}

async function saboteurProgram(): Promise<string> {
  mkdirSync(built, { recursive: true });
  const name = `saboteur-${Math.trunc(newestChange())}`;
  if (!bundlesIn(built).includes(name)) {
    await bundle(name);
    for (const old of bundlesIn(built))
      if (compiledAt(old) < compiledAt(name) - keptMs) rmSync(join(built, old), { recursive: true, force: true });
  }
  return join(built, name, 'serve-main.cjs');
}

/** The program to start with Node; takes the flags of `dsh-acp serve`. */
export const saboteurMain: string = await saboteurProgram();
