import t from 'tap';
import { helpText } from '../../../../src/main/cli/help-text.ts';
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
