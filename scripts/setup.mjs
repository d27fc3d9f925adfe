/**
 * Makes a fresh clone ready: dependencies, `dist/`, and with --test the compiled tests. Quick when nothing is to be done.
 *
 * Needs nothing but Node, npm and this checkout. Uses no package before the packages are installed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { distInputs, distStamp, isFresh, isMain, root, sourceHash, writeStamp } from './source-stamp.mjs';
import { bundleTestPackages } from './test-packages.mjs';

const tests = {
  inputs: ['src', 'test', 'bench', 'scripts/test-packages.mjs', 'tsconfig.json', 'package-lock.json'],
  stamp: 'build/.stamp',
};

class SetupFailure extends Error {}

function checkNode() {
  const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node;
  const [, major, minor] = /^>=(\d+)\.(\d+)/.exec(wanted);
  const [hasMajor, hasMinor] = process.versions.node.split('.').map(Number);
  if (hasMajor > Number(major) || (hasMajor === Number(major) && hasMinor >= Number(minor))) return;
  throw new SetupFailure(
    `Node ${wanted} is needed, this is ${process.version} (${process.execPath}). Install a newer Node and run this again.`,
  );
}

async function step(label, work) {
  const start = performance.now();
  // Said before the work, as an installation can take a minute.
  process.stdout.write(`${label.padEnd(24)} `);
  try {
    await work();
  } catch (error) {
    process.stdout.write('failed\n');
    throw error;
  }
  process.stdout.write(`${((performance.now() - start) / 1000).toFixed(1)} s\n`);
}

/** Runs a program without stdin; its output is shown only when it fails. */
function run(command, args, extraEnv = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, ...extraEnv },
    shell: process.platform === 'win32' && command === 'npm',
  });
  if (result.error !== undefined) throw new SetupFailure(`${command} could not be started: ${result.error.message}`);
  if (result.status === 0) return;
  const output = `${result.stdout}\n${result.stderr}`.trim();
  throw new SetupFailure(`${command} ${args.join(' ')} ended with ${result.status ?? result.signal}\n${output}`);
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  } catch {
    return undefined; // Not there, or cut off by an interrupted installation.
  }
}

/** npm writes what it has installed at the very end of an installation: compare that with what is asked for. */
function isInstalled() {
  const installed = readPackages('node_modules/.package-lock.json');
  if (installed === undefined) return false;
  const wanted = readPackages('package-lock.json') ?? {};
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    return found === undefined ? entry.optional === true : found.version === entry.version;
  });
}

function install() {
  const command = existsSync(join(root, 'package-lock.json')) ? 'ci' : 'install';
  // Without a home npm has nowhere to keep its cache.
  const env = process.env.HOME ? {} : { npm_config_cache: join(tmpdir(), 'dsh-acp-npm-cache') };
  // The tests need the development packages also where NODE_ENV=production is set.
  const args = [command, '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--no-progress'];
  const npm = process.env.npm_execpath;
  if (npm?.endsWith('npm-cli.js')) run(process.execPath, [npm, ...args], env);
  else run('npm', args, env);
}

/** Removes compiled files whose source is gone, so that a deleted test does not run on. */
function pruneBuild(folder) {
  for (const entry of readdirSync(join(root, 'build', folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) pruneBuild(path);
    else if (/\.js(\.map)?$/.test(path) && !existsSync(join(root, path.replace(/\.js(\.map)?$/, '.ts')))) rmSync(join(root, 'build', path));
  }
}

function compile() {
  run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json']);
  for (const folder of ['src', 'test', 'bench']) {
    if (existsSync(join(root, 'build', folder))) pruneBuild(folder);
  }
}

/** @param options.tests also compile sources, tests and bench to `build/` */
export async function setup(options = {}) {
  checkNode();
  if (!isInstalled()) await step('install packages', install);
  if (!isFresh(distStamp, sourceHash(distInputs))) {
    await step('build dist/', async () => {
      const { build } = await import('./build.mjs');
      await build();
    });
  }
  if (options.tests !== true) return;
  const testHash = sourceHash(tests.inputs);
  if (isFresh(tests.stamp, testHash)) return;
  await step('compile src and tests', compile);
  await step('bundle test packages', bundleTestPackages);
  writeStamp(tests.stamp, testHash);
}

/** As {@link setup}, but ends the process with one readable message when it fails. */
export async function setupOrExit(options) {
  try {
    await setup(options);
  } catch (error) {
    console.error(`setup failed: ${error instanceof SetupFailure ? error.message : (error?.stack ?? error)}`);
    process.exit(1);
  }
}

if (isMain(import.meta.url)) {
  await setupOrExit({ tests: process.argv.includes('--test') });
}
