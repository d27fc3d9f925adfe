/** Known secrets are found as they are, and nothing else is taken out. */
import t from 'tap';
import { settingsSecrets } from '../../../src/shared/known-secrets.ts';
import { SecretValues } from '../../../src/shared/secret-values.ts';

t.test('a secret is found in text, in JSON and anywhere in data', async (t) => {
  const secrets = new SecretValues(['pa"ss\\word1', 'sk-12345678']);
  t.equal(secrets.inText('a sk-12345678 b pa"ss\\word1'), 'a [redacted] b [redacted]');
  const data = { list: ['x', { deep: 'key=sk-12345678' }], number: 7, nothing: null };
  t.equal(secrets.mayBeIn(JSON.stringify(data)), true);
  t.equal(secrets.mayBeIn(JSON.stringify({ text: 'pa"ss\\word1' })), true, 'as JSON spells it');
  t.same(secrets.inData(data), { list: ['x', { deep: 'key=[redacted]' }], number: 7, nothing: null });
  t.equal(secrets.mayBeIn('{"sk":"12345678"}'), false);
});

t.test('of two secrets the longer one goes first; words, numbers and short values stay', async (t) => {
  const secrets = new SecretValues(['abcd-1234', 'abcd-1234-5678', 'production', '1234567890', 'ab-1']);
  t.equal(secrets.inText('abcd-1234-5678 production 1234567890 ab-1'), '[redacted] production 1234567890 ab-1');
  t.equal(new SecretValues([]).inText('a'), 'a');
});

t.test('what a subagent is given under a secret name counts', async (t) => {
  const provider = { env: { MY_TOKEN: 'tok-1234-5678', MODE: 'fast-1234-5678' } };
  const secrets = new SecretValues(settingsSecrets({ model: { kind: 'scripted', paceMs: 0 }, subagents: [provider] as never }));
  t.equal(secrets.inText('tok-1234-5678 fast-1234-5678'), '[redacted] fast-1234-5678');
});
