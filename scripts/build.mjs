/**
 * Builds `dist/`: a loader and one file for the main thread, a loader and one file for session threads, one file for the broker
 * thread, and one each for the ACP client and the MCP client, which the broker loads with the first subagent and the first MCP server.
 *
 * All are scripts but these two clients: V8 gives the compiled code of a script, and takes it back at the next start, which Node does not
 * offer for modules before version 22. piscina finds its own worker file by its place on disk, ripgrep is a binary in a package, and
 * prom-client requires Node's modules as CommonJS, so these three stay outside.
 */
import crypto, { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
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
  // As far as esbuild does that; see `escapeNonAscii`.
  charset: 'ascii',
  legalComments: 'none',
  logLevel: 'warning',
  logOverride: { 'empty-import-meta': 'error' },
  metafile: true,
};

/** The schemas that the SDK validates with. */
const schemaFile = /agentclientprotocol\/sdk\/dist\/v1\/schema\/zod\.gen\.js$/;
const schemaCount = /^export const z\w+ = /gm;
const fewestSchemas = 100;

/**
 * Makes each schema when it is first used. All at once are 40 ms of every start, and `initialize` needs a dozen of the 180. `z.lazy` is
 * zod's own: what a schema takes and gives stays the same.
 */
const lazySchemas = {
  name: 'lazy-schemas',
  setup: ({ onLoad }) =>
    onLoad({ filter: schemaFile }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      let count = 0;
      const contents = text.replace(/^(export const z\w+ = )([^]*?);\n(?=\/[*/]|export |$(?![^]))/gm, (_, head, schema) => {
        count += 1;
        return `${head}z.lazy(() => ${schema});\n`;
      });
      if (count < fewestSchemas || count !== text.match(schemaCount)?.length) {
        throw new Error(`${path} is not written as it was: ${count} schemas found; look at lazySchemas`);
      }
      return { contents, resolveDir: dirname(path) };
    }),
};

/** Node's own crypto is 5 ms of a start, and needed only behind the first answer: its functions load it when one is called. */
const lateCrypto = {
  name: 'late-crypto',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:crypto$/, namespace: 'file' }, () => ({ path: 'crypto', namespace: 'late' }));
    onLoad({ filter: /^crypto$/, namespace: 'late' }, () => ({
      contents: Object.keys(crypto)
        .filter((name) => typeof crypto[name] === 'function' && /^[a-z]/.test(name))
        .map((name) => `export const ${name} = (...args) => require('node:crypto').${name}(...args);`)
        .join('\n'),
    }));
  },
};

/** What would compile the schemas of MCP servers, 130 KB of it. The client is given something else in its place. */
const noAjv = {
  name: 'no-ajv',
  setup: ({ onLoad }) =>
    onLoad({ filter: /modelcontextprotocol\/sdk\/dist\/esm\/validation\/ajv-provider\.js$/ }, () => ({
      contents: 'export class AjvJsonSchemaValidator {}',
    })),
};

const program = (threadHash) => ({
  ...common,
  entryPoints: [{ in: 'src/main/cli.ts', out: 'main/program' }],
  outdir: 'dist',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  // A script that V8 compiles has no way to load modules by itself: what is loaded late is part of it, or comes by `require`.
  supported: { 'dynamic-import': false },
  define: { 'import.meta.url': 'programUrl', threadHash: JSON.stringify(threadHash) },
  banner: { js: `const programUrl = require('node:url').pathToFileURL(__filename).href;` },
  plugins: [lazySchemas, lateCrypto, noAjv],
});

/** The loader of the program, once its hash is known. */
const starter = (hash) => ({
  ...common,
  entryPoints: [{ in: 'src/main/start.ts', out: 'main/cli' }],
  outdir: 'dist',
  format: 'cjs',
  define: { buildHash: JSON.stringify(hash) },
  banner: { js: '#!/usr/bin/env node' },
});

const clients = {
  ...common,
  entryPoints: [
    { in: 'src/worker/broker/subagents/acp-client.ts', out: 'worker/acp-client' },
    { in: 'src/worker/broker/mcp/mcp-client.ts', out: 'worker/mcp-client' },
  ],
  outdir: 'dist',
  format: 'esm',
  // Both stand on zod.
  splitting: true,
  chunkNames: 'worker/[name]-[hash]',
  plugins: [lazySchemas, noAjv],
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
  const entries = [program(''), starter(''), clients, thread].flatMap(({ entryPoints }) => entryPoints.map((entry) => entry.in));
  const missing = entries.filter((entry) => !existsSync(join(root, entry)));
  if (missing.length > 0) throw new Error(`these entries do not exist: ${missing.join(', ')}`);
}

/** A CommonJS dependency in an ESM bundle fails only when it is first required: say it now. */
function refuseDynamicRequire(result) {
  for (const [file, output] of Object.entries(result.metafile.outputs)) {
    if (output.bytes === 0) continue;
    const text = readFileSync(join(root, file), 'utf8');
    if (text.includes('Dynamic require of')) {
      const inputs = Object.keys(output.inputs).filter((input) => input.includes('node_modules'));
      throw new Error(`${file} holds a CommonJS require, which fails at run time; look among: ${inputs.slice(0, 12).join(', ')}`);
    }
  }
}

function removeStale(results) {
  const wanted = new Set(['dist/main/package.json', ...results.flatMap((result) => Object.keys(result.metafile.outputs))]);
  for (const folder of ['dist/main', 'dist/worker']) {
    for (const name of readdirSync(join(root, folder))) {
      if (!wanted.has(`${folder}/${name}`)) rmSync(join(root, folder, name), { recursive: true });
    }
  }
}

/**
 * esbuild leaves characters beyond ASCII in regular expressions and tagged templates. There, too, an escape means the same (what `String.raw`
 * makes here is ASCII), and a program of ASCII alone is read quicker and takes half the memory: V8 keeps the source, in every thread for itself.
 */
function escapeNonAscii(text, name) {
  const raw = text.match(/String\.raw`[^`]*`/g) ?? [];
  if (raw.some((literal) => /[^\0-\x7f]/.test(literal))) throw new Error(`${name} has a String.raw beyond ASCII: an escape there is text`);
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * The wrapper of CommonJS, for the loaders that compile a file themselves: with it in the file they need no copy of the whole text. On one
 * line with the text, so that line numbers in stacks are those of the map.
 */
const wrapped = (text) => `(function (exports, require, module, __filename, __dirname) {${text}\n})`;

const hashOf = (content) => createHash('sha256').update(content).digest('hex').slice(0, 16);

/** All bundles, each known to the one that loads it: compiled code that is kept belongs to one build. */
async function bundleAll(outdir, more = {}) {
  requireEntries();
  const { build: bundle } = await import('esbuild');
  const into = (options) => bundle({ ...options, ...more, outdir });
  const results = await Promise.all([into(clients), into(thread)]);
  refuseDynamicRequire(results[0]);
  const finish = (name, wrap) => {
    const file = resolve(root, outdir, name);
    // Its map is of what it is here.
    if (more.sourcemap !== undefined) copyFileSync(file, `${file}.unescaped`);
    const text = wrap(escapeNonAscii(readFileSync(file, 'utf8'), name));
    writeFileSync(file, text);
    return text;
  };
  finish('worker/broker.cjs', (text) => text);
  results.push(await into(program(hashOf(finish('worker/session-host.cjs', wrapped)))));
  results.push(await into(starter(hashOf(finish('main/program.cjs', wrapped)))));
  // The loader is `cli.js`, and a script.
  writeFileSync(resolve(root, outdir, 'main/package.json'), '{ "type": "commonjs" }\n');
  return results;
}

/** Builds everything; rejects with a readable reason. Old files go only after the new ones stand. */
export async function build() {
  const hash = sourceHash(distInputs);
  const results = await bundleAll('dist');
  removeStale(results);
  chmodSync(join(root, 'dist/main/cli.js'), 0o755);
  writeStamp(distStamp, hash);
  return results.flatMap((result) => Object.entries(result.metafile.outputs).map(([file, output]) => ({ file, bytes: output.bytes })));
}

/**
 * Builds the same code into another folder, with a source map beside each file that the file does not name; for profiles. The map of
 * a script is of its `.unescaped`.
 */
export async function bundleWithMaps(outdir) {
  await bundleAll(outdir, { sourcemap: 'external', sourcesContent: false });
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
