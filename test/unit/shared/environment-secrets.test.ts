/** Which variables of the server's own environment are taken out of all that it writes. */
import t from 'tap';
import { environmentSecrets } from '../../../src/shared/environment-secrets.ts';

const secret: Record<string, string> = {
  OPENAI_API_KEY: 'abcd-1234-efgh-5678',
  MY_SERVICE_TOKEN: 'tok.en/1234+5678==',
  AWS_ACCESS_KEY_ID: `AKIA${'ABCD1234'.repeat(2)}`,
  AWS_SECRET_ACCESS_KEY: '/abcDEF0123456789abcDEF0123456789abcDEF+',
  DB_PASSWORD: 'correct-horse-battery-staple',
  DSH_ACP_API_KEY: 'zyxw-9876-vuts',
  PLAIN: `ghp_${'A1b2C3d4'.repeat(5)}`,
  SIGNING_SECRET: 'MTk4NjIy.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs',
};
const harmless: Record<string, string> = {
  PATH: '/usr/local/bin:/usr/bin',
  HOME: '/home/user-1234',
  SSH_AUTH_SOCK: '/tmp/ssh-abcd1234/agent.77',
  GOOGLE_APPLICATION_CREDENTIALS: '/home/user/keys/account-1234.json',
  SSH_KEY_PATH: '~/.ssh/id_ed25519-work',
  DSH_ACP_API_KEY_ENV: 'DEEPSEEK_API_KEY',
  DSH_ACP_MODEL: 'deepseek-v4-pro',
  DSH_ACP_STATE_DIR: '/var/lib/dsh-acp',
  TOKEN_ENDPOINT: 'https://login.example.org/oauth2/token',
  AUTH_METHOD: 'oauth2-pkce-s256',
  AUTH: 'client-credentials',
  COOKIE_DOMAIN: 'app1.example.org',
  TOKEN_PROVIDER: 'db.example.org:5432',
  AUTH_USER: 'some.body+1@example.org',
  KEYBOARD: 'de-latin1-nodeadkeys',
  API_KEY: 'short-1',
  MAX_OUTPUT_TOKENS: '16384000',
  TOKENIZERS_PARALLELISM: 'false',
};

t.test('what is a secret by its name or its shape, and nothing that only tells of one', async (t) => {
  for (const [name, value] of Object.entries(secret)) t.same(environmentSecrets({ [name]: value }), [value], name);
  const torn = Object.entries(harmless).filter(([name, value]) => environmentSecrets({ [name]: value }).some((one) => one.length >= 8));
  t.same(torn, []);
});

t.test('the password of an URL counts alone, and so does the variable that holds the key', async (t) => {
  const url = 'postgres://user:pass-word-12@db.example.org/app';
  t.same(environmentSecrets({ DATABASE_URL: url }), [url, 'pass-word-12']);
  t.same(environmentSecrets({ ODDLY_NAMED: 'value-1234 ' }, ['ODDLY_NAMED']), ['value-1234']);
  t.same(environmentSecrets({ GONE: undefined }, ['GONE']), []);
});
