import t from 'tap';
import { helpText } from '../../../../src/main/cli/help-text.ts';
import { readRunFlags, runFlagNames } from '../../../../src/main/cli/run-flags.ts';
import { runHelpText } from '../../../../src/main/cli/run-help-text.ts';
import { parseCommandLine } from '../../../../src/main/cli/parse-command-line.ts';
import { flagOf } from '../../../../src/main/config/key-spelling.ts';
import { keyNames } from '../../../../src/main/config/schema.ts';

const refused = (argv: string[]) => {
  try {
    parseCommandLine(argv);
  } catch (error) {
    return error as any;
  }
  return undefined;
};

t.test('serve is what runs without a command', async (t) => {
  t.match(parseCommandLine([]), { command: 'serve', named: false, help: false, version: false });
  t.match(parseCommandLine(['serve']), { command: 'serve', named: true });
  t.match(parseCommandLine(['doctor', '--config', 'f']), { command: 'doctor', file: 'f' });
  t.match(parseCommandLine(['-h']), { help: true });
  t.match(parseCommandLine(['--version']), { version: true });
  t.match(parseCommandLine(['config', '--format=json']), { command: 'config', format: 'json' });
});

t.test('flags carry their text, with = or a blank, the last one winning', async (t) => {
  const { flags } = parseCommandLine(['--max-threads', '3', '--model=-odd', '--max-threads=4', 'serve']);
  t.same(
    [...flags].sort(([a], [b]) => a.localeCompare(b)),
    [
      ['max_threads', '4'],
      ['model', '-odd'],
    ],
  );
});

t.test('what is unknown or incomplete is refused with what was meant', async (t) => {
  t.match(refused(['--max-tread', '3']), { code: 'CONFIG_INVALID', data: { suggestion: '--max-threads' } });
  t.match(refused(['doctr']), { code: 'CONFIG_INVALID', data: { suggestion: 'doctor' } });
  t.match(refused(['serve', 'now']), { code: 'CONFIG_INVALID', data: { key: 'now' } });
  t.match(refused(['--model']), { code: 'CONFIG_INVALID', data: { key: '--model' } });
  t.match(refused(['--model', '--profile', 'editor']), { code: 'CONFIG_INVALID', data: { key: '--model' } });
  t.match(refused(['--help=yes']), { code: 'CONFIG_INVALID' });
  t.match(refused(['-x']), { code: 'CONFIG_INVALID', data: { key: '-x' } });
  t.match(refused(['serve', '--format', 'json']), { code: 'CONFIG_INVALID', data: { key: '--format' } });
  t.match(refused(['demo', '--model', 'x']), { code: 'CONFIG_INVALID', data: { key: '--model' } });
  t.match(refused(['--constructor', 'x']), { code: 'CONFIG_INVALID' });
  t.match(refused(['--api-key', 'sk-1']), { code: 'CONFIG_INVALID', data: { key: '--api-key' } });
});

t.test('the help names every flag, and warns of the strict cap', async (t) => {
  const text = helpText('1.2.3');
  for (const name of keyNames) {
    const flag = flagOf(name);
    if (flag !== undefined) t.ok(text.includes(`  ${flag} `), flag);
  }
  t.match(text, /hard limit of running turns/);
  t.ok(text.split('\n').every((line) => line.length <= 120));
});

t.test('run has a subject and flags of its own, beside those of the server', async (t) => {
  const line = parseCommandLine([
    'run',
    'jobs.jsonl',
    '--out',
    'r.jsonl',
    '--model=m',
    '--ordered',
    '--agent-arg',
    '--stdio',
    '--agent-arg=x',
  ]);
  t.match(line, { command: 'run', run: { subject: 'jobs.jsonl' } });
  t.same([...line.flags], [['model', 'm']]);
  t.same(line.run.given.get('agent-arg'), ['--stdio', 'x']);
  t.equal(parseCommandLine(['run', '--', '--fix it']).run.subject, '--fix it');
  t.match(refused(['run', 'fix', 'it']), { code: 'CONFIG_INVALID', data: { key: 'it' } });
  t.match(refused(['--out', 'x']), { code: 'CONFIG_INVALID', data: { key: '--out', expected: 'it only with the command run' } });
  t.match(refused(['run', 'j', '--ordered=yes']), { code: 'CONFIG_INVALID' });
  t.match(refused(['run', 'j', '--orderd']), { code: 'CONFIG_INVALID', data: { suggestion: '--ordered' } });
  const text = runHelpText('1.2.3');
  for (const name of runFlagNames) t.ok(text.includes(`\n  --${name}`), name);
});

t.test('the values of flags of run are checked, and have defaults', async (t) => {
  const read = (...argv: string[]) => readRunFlags(parseCommandLine(['run', 'j', ...argv]).run);
  t.match(read(), {
    concurrency: 16,
    repeat: 1,
    retries: 2,
    retryDelayMs: 1_000,
    shuffleSeed: undefined,
    ordered: false,
    agent: undefined,
  });
  t.match(read('--max-time', '1.5h', '--max-cost', '0.25', '--shuffle'), { maxTimeMs: 5_400_000, maxCostUsd: 0.25, shuffleSeed: 1 });
  t.same(read('--agent', ' npx  agent --acp').agent, ['npx', 'agent', '--acp']);
  t.same(read('--agent', '/my agent', '--agent-arg', 'a b').agent, ['/my agent', 'a b']);
  const rows = [
    ['--concurrency', '0'],
    ['--concurrency', '1025'],
    ['--repeat', 'x'],
    ['--max-time', '90'],
    ['--max-cost', '0'],
    ['--mode', 'yolo'],
    ['--shuffle=-1'],
    ['--agent', ' '],
    ['--agent-arg', 'x'],
    ['--live', '--plain'],
  ];
  for (const argv of rows) t.throws(() => read(...argv), { code: 'CONFIG_INVALID' }, argv.join(' '));
});
