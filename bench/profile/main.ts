/**
 * `npm run bench:profile`: where our server spends its CPU, as flame graphs and tables in bench/profiles. See bench/README.md.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { built, startModelServer } from '../load/targets.ts';
import { machineFacts } from '../machine.ts';
import { addStacks, type CallNode, emptyTree } from './call-tree.ts';
import { type Capture, captureFirstTurns, captureLoad, captureStartup, type LoadToProfile, warmHome } from './capture.ts';
import { countStacks, threadOf } from './cpu-profile.ts';
import { flameSvg } from './flame-svg.ts';
import { SourceNames } from './source-names.ts';
import { profileTables } from './tables.ts';

const names = ['startup', 'main', 'thread', 'attach'] as const;
type ProfileName = (typeof names)[number];

const usage = `Usage: npm run bench:profile -- [startup|main|thread|attach …] [--load NxT@D] [--isolation KIND[:THREADS]] [--out DIR]

  startup       the main thread from the start of the process to the answer of initialize
  main, thread  the main thread, and all session threads together, under a load
  attach        session threads of their own, from their start to the end of their first turn; all four when none is named
  --load        sessions x tokens @ milliseconds between two deltas; 200x200@5 when not given
  --isolation   shared, dedicated or strict, with the most threads; shared when not given
  --out         where the files go; bench/profiles when not given
`;
const starts = 20;
const warmUps = 4;
const seconds = 8;
const firstTurns = 12;
const standardLoad = '200x200@5';

interface CommandLine {
  readonly chosen: readonly ProfileName[];
  readonly packageRoot: string;
  readonly load: LoadToProfile;
  readonly isolation: string;
  readonly out: string;
  /** Behind the names of the files, where another load was asked for. */
  readonly suffix: string;
}

function readCommandLine(): CommandLine {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      package: { type: 'string', default: join(built, '..') },
      load: { type: 'string', default: standardLoad },
      isolation: { type: 'string', default: 'shared' },
      out: { type: 'string', default: join(built, '..', 'bench', 'profiles') },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
  const chosen = names.filter((name) => positionals.length === 0 || positionals.includes(name));
  const unknown = positionals.filter((name) => !names.some((one) => one === name));
  if (unknown.length > 0) throw new Error(`no profile is named ${unknown.join(', ')}`);
  const [, sessions, tokens, delay] = /^(\d+)x(\d+)@(\d+)$/.exec(values.load) ?? [];
  if (sessions === undefined) throw new Error(`a load is written as ${standardLoad}, not as ${values.load}`);
  const other = [values.load === standardLoad ? '' : values.load.replace('@', '-'), values.isolation === 'shared' ? '' : values.isolation];
  return {
    chosen,
    packageRoot: values.package,
    load: { sessions: Number(sessions), tokens: Number(tokens), delayMs: Number(delay) },
    isolation: values.isolation,
    out: values.out,
    suffix: other.map((part) => (part === '' ? '' : `-${part.replace(':', '-')}`)).join(''),
  };
}

function commandLineOrExit(): CommandLine {
  try {
    return readCommandLine();
  } catch (error) {
    process.stderr.write(`bench:profile: ${(error as Error).message}\n\n${usage}`);
    return process.exit(2);
  }
}

const { chosen, packageRoot, load, isolation, out, suffix } = commandLineOrExit();
const sourceNames = new SourceNames(join(built, '..').replace(/\/$/, ''));
const machine = machineFacts();
mkdirSync(out, { recursive: true });

function treeOf({ profiles, spans }: Capture, thread: 'main' | 'session'): CallNode {
  const tree = emptyTree();
  for (const profile of profiles) {
    if (threadOf(profile) === thread) addStacks(tree, countStacks(profile, spans), sourceNames);
  }
  return tree;
}

function keep(name: string, what: string, tree: CallNode): void {
  const title = `${what}; node ${machine.node}, commit ${machine.commit}`;
  const tables = profileTables(title, tree);
  writeFileSync(join(out, `${name}.svg`), flameSvg(title, tree));
  writeFileSync(join(out, `${name}.txt`), `${tables}\n`);
  process.stdout.write(`${tables}\n\n${join(out, `${name}.svg`)}\n\n`);
}

// Each thread has a sampler of its own, and many of them would leave no time for the work.
const intervalUs = isolation.startsWith('shared') ? 200 : 1000;

const home = mkdtempSync(join(tmpdir(), 'dsh-acp-profile-home-'));
const model = await startModelServer();
try {
  await warmHome({ packageRoot, home, model, isolation, intervalUs: 1000 });
  if (chosen.includes('startup')) {
    const capture = await captureStartup({ packageRoot, home, model, isolation, intervalUs: 100 }, starts);
    keep('startup', `main thread from start to the answer of initialize, ${starts} starts`, treeOf(capture, 'main'));
  }
  if (chosen.includes('attach')) {
    const capture = await captureFirstTurns(
      { packageRoot, home, model, isolation: `dedicated:${firstTurns}`, intervalUs: 100 },
      firstTurns,
    );
    keep(
      'attach',
      `${firstTurns} session threads from their start to the end of a first turn, one after the other`,
      treeOf(capture, 'session'),
    );
  }
  if (chosen.includes('main') || chosen.includes('thread')) {
    const capture = await captureLoad({ packageRoot, home, model, isolation, intervalUs }, load, { warmUps, seconds });
    const said = `${load.sessions} sessions × ${load.tokens} tokens, ${load.delayMs} ms between deltas, ${isolation}`;
    if (chosen.includes('main')) keep(`main${suffix}`, `main thread, ${said}`, treeOf(capture, 'main'));
    if (chosen.includes('thread')) keep(`thread${suffix}`, `session threads, ${said}`, treeOf(capture, 'session'));
  }
} finally {
  await model.close();
  rmSync(home, { recursive: true, force: true });
}
