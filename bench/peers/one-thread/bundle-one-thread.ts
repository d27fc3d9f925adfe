/**
 * Makes one file of the server with everything in one thread. It keeps no compiled code between its starts, as `dist/` does, so what it is
 * good for are its rounds, not the time of its `initialize`.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const standIn = join(root, 'bench/peers/one-thread/one-thread.ts');
/** Where threads are started, and what runs on them and asks for their parts. */
const startsThreads = /[\\/](?:broker-thread|serve-broker|thread-context)\.ts$/;

/** Gives the path of the program. */
export async function bundleOneThread(): Promise<string> {
  const outfile = join(root, 'build/bench/one-thread-server/server.mjs');
  mkdirSync(dirname(outfile), { recursive: true });
  // Not with the module: the other parts of the bench do without it.
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: root,
    entryPoints: ['bench/peers/one-thread/one-thread-main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    mainFields: ['module', 'main'],
    external: ['@vscode/ripgrep', 'prom-client'],
    minifySyntax: true,
    minifyWhitespace: true,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'error',
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    plugins: [
      {
        name: 'one-thread',
        setup: (bundle) => {
          bundle.onResolve({ filter: /^piscina$/ }, () => ({ path: standIn }));
          bundle.onResolve({ filter: /^node:worker_threads$/ }, ({ importer }) =>
            startsThreads.test(importer) ? { path: standIn } : undefined,
          );
          // What the broker loads with the first subagent or MCP server; the comparison has neither.
          bundle.onResolve({ filter: /\/(?:acp|mcp)-client\.ts$/ }, ({ path }) => ({ path, external: true }));
        },
      },
    ],
  });
  return outfile;
}
