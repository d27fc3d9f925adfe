/** What leaves the broker about a failure: short, and without secrets. */
import t from 'tap';
import { diagnosticText } from '../../../../../src/worker/broker/subagents/diagnostic.ts';
import { SecretFilter } from '../../../../../src/worker/broker/subagents/secret-filter.ts';

const plain = new SecretFilter({});

t.test('a long text keeps its beginning and its end, within 4096 bytes of whole characters', async (t) => {
  t.equal(diagnosticText(' short \n', plain), 'short');
  for (const filling of ['x', 'é', '€', '😀']) {
    for (const offset of ['', 'a', 'ab', 'abc']) {
      const text = diagnosticText(`${offset}first${filling.repeat(5000)}last`, plain);
      t.ok(Buffer.byteLength(text) <= 4096 && Buffer.byteLength(text) > 4080, `${Buffer.byteLength(text)} bytes`);
      t.match(text, /^a?b?c?first.*\n\[\.\.\.\]\n.*last$/s);
      t.notMatch(text, '\uFFFD');
    }
  }
  t.ok(Buffer.byteLength(diagnosticText('x'.repeat(30_000_000), plain)) <= 4096);
});

t.test('secrets are taken out: those that the child was given, and what looks like one', async (t) => {
  const secrets = new SecretFilter({ MY_TOKEN: 'hunter22', HOME: '/home/me', SHORT_KEY: 'abc', LONG_TOKEN: 'hunter22-and-more' });
  const text = [
    'token hunter22, then hunter22-and-more, in /home/me',
    'sk-proj-abc123def456ghi789 ghp_abcdefghijklmnopqrstuvwxyz AKIAIOSFODNN7EXAMPLE',
    'Authorization: Bearer abcdef.ghijkl-mnop',
    'postgres://user:pa55word@host/db',
    `api_key = "s3cr3t-value" and {"password":"correct horse"}`,
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl',
  ].join('\n');
  const clean = secrets.clean(text);
  t.notMatch(clean, /hunter|and-more|sk-proj|ghp_a|AKIAI|abcdef\.|pa55|s3cr3t|correct|eyJ/);
  t.match(clean, '/home/me');
  t.match(clean, 'postgres://user:[redacted]@host/db');
});

t.test('plain text stays as it is', async (t) => {
  const text = 'Error: cannot find module "./key.js"\n    at tokenizer (file:///srv/app/token.js:12:34)\nmax tokens: 8192, sky-blue';
  t.equal(plain.clean(text), text);
});
