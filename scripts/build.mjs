/**
 * Builds `dist/`: one lean file for the main thread (and chunks that `serve` does not need), one for a session thread,
 * one for the broker thread, and one each for the ACP client and the MCP client, which the broker loads with the first subagent and
 * the first MCP server.
 *
 * Bundling is worth about 100 ms of the time to the first answer. piscina finds its own worker file by its place on
 * disk, ripgrep is a binary in a package, and prom-client requires Node's modules as CommonJS, so these three stay outside.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { distInputs, distStamp, isMain, root, sourceHash, writeStamp } from './source-stamp.mjs';

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  // comlink has no "exports": without this its UMD file comes in, whose names are all undefined.
  mainFields: ['module', 'main'],
  external: ['piscina', '@vscode/ripgrep', 'prom-client'],
  minifySyntax: true,
  minifyWhitespace: true,
  // Identifiers stay as they are: names in stacks cost nothing then, where keepNames would cost a call for each closure.
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'warning',
  logOverride: { 'empty-import-meta': 'error' },
  metafile: true,
};

const main = {
  ...common,
  entryPoints: [
    { in: 'src/main/cli.ts', out: 'main/cli' },
    // Here, since it is the same SDK: as ESM it loads in half the time that a bundle of CommonJS needs, and it is stored once.
    { in: 'src/worker/broker/subagents/acp-client.ts', out: 'worker/acp-client' },
    // Here, too: both stand on zod.
    { in: 'src/worker/broker/mcp/mcp-client.ts', out: 'worker/mcp-client' },
  ],
  outdir: 'dist',
  format: 'esm',
  splitting: true,
  chunkNames: 'main/[name]-[hash]',
  plugins: [
    {
      // What would compile the schemas of MCP servers, 130 KB of it. The client is given something else in its place.
      name: 'no-ajv',
      setup: ({ onLoad }) =>
        onLoad({ filter: /modelcontextprotocol\/sdk\/dist\/esm\/validation\/ajv-provider\.js$/ }, () => ({
          contents: 'export class AjvJsonSchemaValidator {}',
        })),
    },
  ],
};

const thread = {
  ...common,
  entryPoints: [
    { in: 'src/worker/thread-loader.ts', out: 'worker/session-thread' },
    { in: 'src/worker/session-thread.ts', out: 'worker/session-host' },
    { in: 'src/worker/broker/entry.ts', out: 'worker/broker' },
  ],
  outdir: 'dist',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  plugins: [
    {
      name: 'clients-apart',
      setup: ({ onResolve }) =>
        onResolve({ filter: /\/(?:acp|mcp)-client\.ts$/ }, ({ path }) => ({
          path: `./${path.slice(path.lastIndexOf('/') + 1, -'.ts'.length)}.js`,
          external: true,
        })),
    },
  ],
};

function requireEntries() {
  const entries = [...main.entryPoints, ...thread.entryPoints].map((entry) => entry.in);
  const missing = entries.filter((entry) => !existsSync(join(root, entry)));
  if (missing.length > 0) throw new Error(`these entries do not exist: ${missing.join(', ')}`);
}

/** A CommonJS dependency in an ESM bundle fails only when it is first required: say it now. */
function refuseDynamicRequire(result) {
  for (const [file, output] of Object.entries(result.metafile.outputs)) {
    if (!file.endsWith('.js') || output.bytes === 0) continue;
    const text = readFileSync(join(root, file), 'utf8');
    if (text.includes('Dynamic require of')) {
      const inputs = Object.keys(output.inputs).filter((input) => input.includes('node_modules'));
      throw new Error(`${file} holds a CommonJS require, which fails at run time; look among: ${inputs.slice(0, 12).join(', ')}`);
    }
  }
}

function removeStale(results) {
  const wanted = new Set(results.flatMap((result) => Object.keys(result.metafile.outputs)));
  for (const folder of ['dist/main', 'dist/worker']) {
    for (const name of readdirSync(join(root, folder))) {
      if (!wanted.has(`${folder}/${name}`)) rmSync(join(root, folder, name), { recursive: true });
    }
  }
}

/** Builds everything; rejects with a readable reason. Old files go only after the new ones stand. */
export async function build() {
  requireEntries();
  const { build: bundle } = await import('esbuild');
  const hash = sourceHash(distInputs);
  const results = await Promise.all([bundle(main), bundle(thread)]);
  refuseDynamicRequire(results[0]);
  removeStale(results);
  chmodSync(join(root, 'dist/main/cli.js'), 0o755);
  writeStamp(distStamp, hash);
  return results.flatMap((result) => Object.entries(result.metafile.outputs).map(([file, output]) => ({ file, bytes: output.bytes })));
}

/** Builds the same code into another folder, with a source map beside each file that the file does not name; for profiles. */
export async function bundleWithMaps(outdir) {
  requireEntries();
  const { build: bundle } = await import('esbuild');
  await Promise.all([main, thread].map((one) => bundle({ ...one, outdir, sourcemap: 'external', sourcesContent: false })));
}

if (isMain(import.meta.url)) {
  const start = performance.now();
  try {
    const files = await build();
    for (const { file, bytes } of files) console.log(`${file}  ${(bytes / 1024).toFixed(0)} KB`);
    console.log(`built in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  } catch (error) {
    console.error(`build failed: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
