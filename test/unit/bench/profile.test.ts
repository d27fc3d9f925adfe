/** From samples to stacks, from stacks to sums and a picture. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { addStacks, emptyTree, placeOf, sumUp } from '../../../bench/profile/call-tree.ts';
import { type CallFrame, countStacks, type CpuProfile, threadOf } from '../../../bench/profile/cpu-profile.ts';
import { flameSvg } from '../../../bench/profile/flame-svg.ts';
import { SourceNames } from '../../../bench/profile/source-names.ts';
import { profileTables } from '../../../bench/profile/tables.ts';

function frame(functionName: string, url = '', lineNumber = -1, columnNumber = -1): CallFrame {
  return { functionName, url, lineNumber, columnNumber };
}

/** (root) → main → work → work → parse, and (idle). */
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('main', 'node:internal/main', 9, 0), children: [4] },
    { id: 4, callFrame: frame('work', 'node:work', 0, 5), children: [5] },
    { id: 5, callFrame: frame('work', 'node:work', 0, 5), children: [6] },
    { id: 6, callFrame: frame('parse') },
  ],
  startTime: 1000,
  endTime: 2000,
  samples: [3, 2, 5, 6, 6, 4],
  timeDeltas: [100, 100, 100, 100, 100, 100],
};
const names = new SourceNames('/nowhere');

function treeOf(spans?: Parameters<typeof countStacks>[1]) {
  const tree = emptyTree();
  addStacks(tree, countStacks(profile, spans), names);
  return tree;
}

t.test('samples become stacks, without what was idle and what lies outside the spans', async (t) => {
  const stacks = countStacks(profile);
  t.equal(
    stacks.reduce((sum, { count }) => sum + count, 0),
    5,
  );
  t.same(
    stacks.find(({ count }) => count === 2)?.frames.map(({ functionName }) => functionName),
    ['main', 'work', 'work', 'parse'],
  );
  t.equal(treeOf([{ from: 1250, to: 1450 }]).total, 2);
  t.equal(
    treeOf([
      { from: 0, to: 1100 },
      { from: 1600, to: 9999 },
    ]).total,
    2,
  );
});

t.test('a function that is on a stack twice counts once there', async (t) => {
  const sums = sumUp(treeOf(), placeOf);
  const of = (what: string) => sums.find((sum) => sum.what === what);
  t.match(of('work node:work:1'), { self: 2, total: 4 });
  t.match(of('main node:internal/main:10'), { self: 1, total: 5 });
  t.match(of('parse'), { self: 2, total: 2 });
  t.same(
    sumUp(treeOf(), ({ owner }) => owner).map(({ what, self, total }) => [what, self, total]),
    [
      ['node', 3, 5],
      ['native', 2, 2],
    ],
  );
});

t.test('the tables say percent of all samples', async (t) => {
  const text = profileTables('a load', treeOf());
  t.match(text, /^a load\n5 samples/);
  t.match(text, /Functions by self\n {2}self {2}total\n {2}40\.0 {3}80\.0 {2}work node:work:1/);
  t.match(text, /Packages by self\n.*\n {2}60\.0 {2}100\.0 {2}node\n {2}40\.0 {3}40\.0 {2}native code/);
  t.doesNotThrow(() => profileTables('nothing', emptyTree()));
});

t.test('the flame graph has the same bytes each time, whatever came first, and leaves out what is less than 0.3 %', async (t) => {
  const stack = (name: string, count: number) => ({ frames: [frame('outer', 'node:a', 0, 0), frame(name, 'node:b', 0, 0)], count });
  const draw = (stacks: ReturnType<typeof stack>[]): string => {
    const tree = emptyTree();
    addStacks(tree, stacks, names);
    return flameSvg('title <&>', tree);
  };
  const svg = draw([stack('often', 900), stack('some', 97), stack('seldom', 2)]);
  t.equal(svg, draw([stack('seldom', 2), stack('some', 97), stack('often', 900)]));
  t.match(svg, /often node:b:1: 90\.1 %, itself 90\.1 %/);
  t.notMatch(svg, /seldom/);
  t.match(svg, /title &lt;&amp;&gt;/);
  t.match(svg, /prefers-color-scheme:dark/);
});

t.test('threads are told by the files that only they load', async (t) => {
  const of = (url: string) => threadOf({ ...profile, nodes: [{ id: 1, callFrame: frame('x', url) }] });
  t.same(['file:///p/dist/main/cli.js', '/p/dist/worker/session-host.cjs', '/p/dist/worker/broker.cjs', 'node:fs'].map(of), [
    'main',
    'session',
    'broker',
    'other',
  ]);
});

t.test('places in bundles become places in sources, also below the wrapper of the thread loader', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-profile-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  // Column 0 → a.ts 1:1, column 10 → x.js 2:1 of a package.
  const map = { version: 3, sources: ['../src/a.ts', '../node_modules/@scope/x/dist/x.js'], names: [], mappings: 'AAAA,UCCA' };
  for (const file of ['cli.js', 'session-host.cjs']) writeFileSync(join(folder, `${file}.map`), JSON.stringify(map));
  const sources = new SourceNames(join(folder, '..'));
  const at = (url: string, column: number, name = 'f') => sources.of(frame(name, url, 0, column));
  t.match(at(`file://${folder}/cli.js`, 3), { name: 'f', file: 'src/a.ts', line: 1, owner: 'dsh-acp' });
  t.match(at(`file://${folder}/cli.js`, 12), { file: '@scope/x/dist/x.js', line: 2, owner: '@scope/x' });
  t.match(at(`file://${folder}/cli.js`, 0, ''), { name: '(module x.js and 1 more)', line: 0 });
  const wrapper = '(function (exports, require, module, __filename, __dirname) {'.length;
  t.match(at(`${folder}/session-host.cjs`, wrapper + 12), { owner: '@scope/x' });
  t.match(at(`${folder}/session-host.cjs`, wrapper + 3), { file: 'src/a.ts' });
  writeFileSync(join(folder, 'program.cjs.map'), JSON.stringify(map));
  writeFileSync(join(folder, 'program.cjs.unescaped'), 'é123456789f');
  // Escaped, the first letter is six, so what was at column 10 is at 15.
  t.match(at(`${folder}/program.cjs`, wrapper + 14), { file: 'src/a.ts' });
  t.match(at(`${folder}/program.cjs`, wrapper + 15), { owner: '@scope/x' });
  t.match(sources.of(frame('(garbage collector)')), { owner: 'V8', file: '' });
  t.equal(sources.of(frame('src/a.ts', 'node:x', 0, 0)).name, '(module)', 'esbuild names what runs a module late after its file');
  t.equal(sources.of(frame('Module._extensions..js', 'node:x', 0, 0)).name, 'Module._extensions..js');
});
