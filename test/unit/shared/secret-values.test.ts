/** Known secrets are found as they are, and nothing else is taken out. */
import t from 'tap';
import { clientSecrets, settingsSecrets } from '../../../src/shared/known-secrets.ts';
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

t.test('so does what a client gives: variables, headers, and what stands in the URL of a server', async (t) => {
  const given = clientSecrets({ MY_TOKEN: 'tok-1234-5678', MODE: 'fast-1234' }, [
    { type: 'stdio', name: 'a', command: 'a', args: [], env: { A_KEY: 'key-1234-5678' } },
    {
      type: 'http',
      name: 'b',
      url: 'https://u:pass-12345@h/mcp?api_key=query-12345&page=page-12345',
      headers: { Authorization: 'Bearer bear-12345' },
    },
    { type: 'sse', name: 'c', url: 'no url', headers: {} },
  ]);
  const text = 'tok-1234-5678 key-1234-5678 pass-12345 query-12345 bear-12345';
  t.equal(new SecretValues(given).inText(`${text} fast-1234 page-12345`), `${text.replaceAll(/\S+/g, '[redacted]')} fast-1234 page-12345`);
});
