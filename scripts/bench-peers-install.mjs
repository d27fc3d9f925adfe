/**
 * Installs the agents of others that `npm run bench -- peers` compares ours with, at the versions that `bench/peers/` names, and a newer
 * Node for those that need it. Usage: `npm run bench:peers-install [-- NAME ...]`.
 *
 * Each gets a folder of its own below `$DSH_ACP_BENCH_PEERS`, or below the user's cache; nothing is put into this project. What is there
 * already is left alone. Ends 1 when one could not be installed; the bench then runs without it.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { setupOrExit } from './setup.mjs';

const installMs = 600_000;
const run = promisify(execFile);

async function install({ name, packages }, folder) {
  mkdirSync(folder, { recursive: true });
  // Some packages come with a script that puts their binary in place; a newer npm runs only those that are named.
  const allowScripts = Object.fromEntries(Object.keys(packages).map((one) => [one, true]));
  writeFileSync(`${folder}/package.json`, JSON.stringify({ name: `bench-${name}`, private: true, allowScripts }));
  const wanted = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  await run('npm', ['install', '--save-exact', '--no-audit', '--no-fund', '--no-progress', '--ignore-scripts=false', ...wanted], {
    cwd: folder,
    timeout: installMs,
    maxBuffer: 64 * 1024 * 1024,
  });
}

await setupOrExit({ tests: true });
const { allInstalled, missingPackage, modulesOf } = await import('../build/bench/peers/peers-folder.js');
const names = process.argv.slice(2);
const unknown = names.filter((name) => !allInstalled.some((one) => one.name === name));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(', ')}; there are ${allInstalled.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
for (const one of allInstalled) {
  if (names.length > 0 && !names.includes(one.name)) continue;
  const what = Object.entries(one.packages)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
  if (missingPackage(one) === undefined) {
    console.log(`there       ${what}`);
    continue;
  }
  try {
    await install(one, dirname(modulesOf(one)));
    const still = missingPackage(one);
    if (still !== undefined) throw new Error(still);
    console.log(`installed   ${what}`);
  } catch (error) {
    process.exitCode = 1;
    console.error(
      `FAILED      ${what}: ${String(error.stderr ?? error.message)
        .trim()
        .slice(-600)}`,
    );
  }
}
