import { parseArgs } from 'node:util';
import t from 'tap';
import { defaultShape, loadOptions, loadShapeOf, shapeText } from '../../../bench/load/load-shape.ts';

function shapeOf(...args: string[]): ReturnType<typeof loadShapeOf> {
  return loadShapeOf(parseArgs({ args, options: loadOptions }).values);
}

t.test('without an option there is no load to describe', async (t) => {
  t.equal(shapeOf(), undefined);
});

t.test('what is not said stays as it is by default', async (t) => {
  t.strictSame(shapeOf('--sessions', '7'), { ...defaultShape, sessions: 7 });
});

t.test('every option is taken', async (t) => {
  const args =
    '--connections 2 --sessions 3 --turns 4 --tokens 5 --delay 0.5 --loop open --rate 12.5 --mix edits --history 6 --output 7 --profile automation --isolation parked --threads 8 --repeats 9 --seed 10';
  t.strictSame(shapeOf(...args.split(' ')), {
    connections: 2,
    sessions: 3,
    turns: 4,
    tokens: 5,
    delayMs: 0.5,
    loop: 'open',
    rate: 12.5,
    mix: 'edits',
    history: 6,
    outputBytes: 7,
    profile: 'automation',
    isolation: 'parked',
    threads: 8,
    repeats: 9,
    seed: 10,
    floor: false,
  });
  t.equal(shapeOf('--floor')?.floor, true);
});

t.test('a wrong value is refused by the name of its option', async (t) => {
  for (const [name, value] of [
    ['sessions', '0'],
    ['sessions', '2.5'],
    ['tokens', 'many'],
    ['delay', '-1'],
    ['mix', 'everything'],
    ['isolation', 'none'],
    ['repeats', ''],
  ] as const) {
    t.throws(() => shapeOf(`--${name}=${value}`), new RegExp(`--${name}`), `${name} ${value}`);
  }
});

t.test('contradictions are refused', async (t) => {
  t.throws(() => shapeOf('--loop', 'open'), /--rate/);
  t.throws(() => shapeOf('--rate', '5'), /--loop open/);
  for (const more of [
    ['--mix', 'reads'],
    ['--history', '5'],
    ['--profile', 'automation'],
  ]) {
    t.throws(() => shapeOf('--floor', ...more), /--floor/);
  }
});

t.test('a load is named by what it is', async (t) => {
  const text = shapeText(shapeOf('--mix', 'commands', '--history', '20', '--loop', 'open', '--rate', '9')!);
  t.equal(text, '1 × 50 sessions × 2 turns × 100 tokens, 5 ms, open, 9 prompts/s, shared, commands, history of 20 turns');
});
