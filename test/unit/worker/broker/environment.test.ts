import t from 'tap';
import { childEnvironment, isSecretVariable } from '../../../../src/worker/broker/environment.ts';

// Put together at run time, so that no scanner takes this file for a leak.
const fake = (prefix: string, length: number): string => prefix + 'A1b2C3d4'.repeat(8).slice(0, length);

const withheld: [string, string][] = [
  ['DEEPSEEK_API_KEY', 'x'],
  ['OPENAI_APIKEY', 'x'],
  ['api_key', 'x'],
  ['AWS_ACCESS_KEY_ID', 'x'],
  ['AWS_SECRET_ACCESS_KEY', 'x'],
  ['AWS_SESSION_TOKEN', 'x'],
  ['AWS_CREDENTIALS', 'x'],
  ['GOOGLE_APPLICATION_CREDENTIALS', '/x.json'],
  ['GITHUB_TOKEN', 'x'],
  ['GITHUBTOKEN', 'x'],
  ['npm_config_//registry.example/:_authToken', 'x'],
  ['NPM_CONFIG__AUTH', 'x'],
  ['DOCKER_AUTH_CONFIG', '{}'],
  ['PGPASSWORD', 'x'],
  ['MYSQL_PWD', 'x'],
  ['DB_PASS', 'x'],
  ['GPG_PASSPHRASE', 'x'],
  ['SESSION_COOKIE', 'x'],
  ['CLIENT_SECRET', 'x'],
  ['REFRESH_TOKENS', 'abc,def'],
  ['DSH_ANYTHING', 'x'],
  ['dsh_acp_model', 'x'],
  ['DATABASE_URL', 'postgres://user:pw@db/app'],
  ['REDIS', 'redis://:pw@cache:6379'],
  ['HTTPS_PROXY', 'http://user:pw@proxy:3128'],
  ['STORAGE', 'DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc=='],
  ['A', fake('sk-', 24)],
  ['B', fake('ghp_', 36)],
  ['C', fake('github_pat_', 40)],
  ['D', `AKIA${'ABCD1234'.repeat(2)}`],
  ['E', fake('glpat-', 20)],
  ['F', fake('xoxb-', 20)],
  ['G', `${fake('eyJ', 20)}.${fake('eyJ', 20)}.sig`],
  ['H', '-----BEGIN OPENSSH PRIVATE KEY-----\nabc'],
  ['I', `header ${fake('hf_', 30)}`],
];

const kept: [string, string][] = [
  ['PATH', '/usr/bin:/opt/sk-1234567890123456789012'],
  ['HOME', '/root'],
  ['PWD', '/work'],
  ['OLDPWD', '/'],
  ['SSH_AUTH_SOCK', '/tmp/agent'],
  ['SSH_ASKPASS', '/usr/bin/askpass'],
  ['XAUTHORITY', '/home/user/.Xauthority'],
  ['KEYBOARD_LAYOUT', 'de'],
  ['XKB_DEFAULT_LAYOUT', 'de'],
  ['KEYTIMEOUT', '1'],
  ['GNOME_KEYRING_CONTROL', '/run/keyring'],
  ['TOKENIZERS_PARALLELISM', 'false'],
  ['MAX_OUTPUT_TOKENS', '8192'],
  ['MONKEY', 'banana'],
  ['COMPASS', 'north'],
  ['BYPASS', '1'],
  ['AUTHOR', 'me'],
  ['GIT_AUTHOR_NAME', 'me'],
  ['HTTP_PROXY', 'http://proxy:3128'],
  ['HOMEPAGE', 'https://example.org/a@b:c'],
  ['REMOTE', 'ssh://git@example.org:22/x'],
  ['FOLDER', '/srv/task-runner-with-a-long-name-2024'],
  ['LC_ALL', 'C.UTF-8'],
  ['XDG_SESSION_ID', '3'],
];

t.test('what looks like a credential is withheld', async (t) => {
  for (const [name, value] of withheld) t.equal(isSecretVariable(name, value), true, name);
});

t.test('what only resembles one is kept', async (t) => {
  for (const [name, value] of kept) t.equal(isSecretVariable(name, value), false, name);
});

t.test('the result is plain, unattended, and free of what was named', async (t) => {
  const result = childEnvironment({ A: '1', B: undefined, MINE: 'x', TERM: 'xterm', PAGER: 'less' }, ['MINE']);
  t.same(result, { A: '1', NO_COLOR: '1', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0' });
});
