import t from 'tap';
import { isSecretVariable } from '../../../../src/shared/secret-variables.ts';
import { allowedEnvironment, childEnvironment, subagentEnvironment } from '../../../../src/worker/broker/environment.ts';

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
  ['J', `SG.${fake('', 20)}.${fake('', 40)}`],
  ['K', fake('dop_v1_', 60)],
  ['L', fake('hvs.', 40)],
  ['M', `123456789:AA${fake('', 33)}`],
  ['N', '-----BEGIN PGP PRIVATE KEY BLOCK-----'],
  ['O', fake('ya29.', 40)],
  ['SENTRY', `https://${fake('', 32)}@o1.example.org/2`],
  ['CALLBACK', `https://example.org/hook?sig=${fake('', 30)}`],
  ['REGISTRIES', `{"auths":{"r.example":{"auth":"${fake('', 20)}"}}}`],
  ['CHAT', `https://discord.com/api/webhooks/${fake('', 18)}`],
  ['SSHPASS', 'x'],
  ['DBPASS', 'x'],
  ['FTP_PW', 'x'],
  ['GH_PAT', 'x'],
  ['SECRET_KEY_BASE', 'x'],
  ['RAILS_MASTERKEY', 'x'],
  ['WALLET_MNEMONIC', 'x'],
  ['COOKIE', 'a=b'],
  ['SERVICE_CREDENTIALS', '{}'],
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
  ['MAX_TOKENS', '4096'],
  ['AWS_REGION', 'eu-central-1'],
  ['AWS_PROFILE', 'work'],
  ['GIT_ASKPASS', '/usr/bin/askpass'],
  ['PATTERN', 'a*'],
  ['COMPATIBILITY', 'none'],
  ['DEPATH', '/x'],
  ['CI', 'true'],
  ['NODE_OPTIONS', '--max-old-space-size=4096'],
  ['JAVA_HOME', '/usr/lib/jvm/java-17-openjdk-amd64'],
  ['DATABASE_HOST', 'db.example.org:5432'],
  ['DOCKER_HOST', 'unix:///run/user/1000/docker.sock'],
  ['SEARCH_URL', 'https://example.org/search?q=something-long&page=2'],
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

t.test('a secret that stands a second time, under a plain name or within another value, is withheld with it', async (t) => {
  const ambient = {
    PATH: '/opt/tok-12345678/bin',
    SERVICE_TOKEN: 'tok-12345678',
    COPY: 'tok-12345678',
    LINE: 'curl -H tok-12345678',
    OTHER: 'tok-1234',
    KEY_FILE: '/keys/main-1234',
    PLACE: '/keys/main-1234',
    MODEL: 'named-98765432',
    AGAIN: 'named-98765432',
  };
  const { PATH, OTHER, PLACE, ...rest } = childEnvironment(ambient, ['MODEL']);
  t.same([PATH, OTHER, PLACE], [ambient.PATH, ambient.OTHER, ambient.PLACE], 'not what all programs need, or what is no secret');
  t.notMatch(JSON.stringify(rest), /12345678|98765432/);
  t.notOk('COPY' in allowedEnvironment(ambient, ['C*']));
  t.match(allowedEnvironment(ambient, ['COPY']), { COPY: 'tok-12345678' }, 'but for what is named');
});

t.test('an allow-list passes what it names and what programs need, and a secret only under its exact name', async (t) => {
  const ambient = {
    PATH: '/bin',
    HOME: '/home/a',
    LANG: 'C',
    EDITOR: 'vi',
    MINE_A: '1',
    MINE_TOKEN: 'x',
    MINE_URL: 'postgres://u:p@db/x',
    DSH_ACP_MODEL: 'm',
    MODEL_KEY: 'k',
    PLAIN: 'withheld',
  };
  const passed = (allow: readonly string[], withheld: readonly string[] = []) => {
    const {
      NO_COLOR: _a,
      TERM: _b,
      PAGER: _c,
      GIT_PAGER: _d,
      GIT_TERMINAL_PROMPT: _e,
      ...rest
    } = allowedEnvironment(ambient, allow, withheld);
    return Object.keys(rest).sort();
  };
  t.same(passed([]), ['HOME', 'LANG', 'PATH']);
  t.same(passed(['EDITOR', 'MISSING']), ['EDITOR', 'HOME', 'LANG', 'PATH']);
  t.same(passed(['MINE_*']), ['HOME', 'LANG', 'MINE_A', 'PATH']);
  t.same(passed(['MINE_*', 'MINE_TOKEN']), ['HOME', 'LANG', 'MINE_A', 'MINE_TOKEN', 'PATH']);
  t.same(passed(['*'], ['PLAIN']), ['EDITOR', 'HOME', 'LANG', 'MINE_A', 'PATH']);
  t.same(passed(['DSH_*', 'MODEL_*']), ['HOME', 'LANG', 'PATH']);
  t.same(passed(['DSH_ACP_MODEL', 'MODEL_KEY', 'PLAIN'], ['PLAIN', 'MODEL_KEY']), [
    'DSH_ACP_MODEL',
    'HOME',
    'LANG',
    'MODEL_KEY',
    'PATH',
    'PLAIN',
  ]);
});

t.test("a subagent's own variables are laid over either kind, secrets and DSH_ variables too", async (t) => {
  const ambient = { PATH: '/bin', EDITOR: 'vi', API_KEY: 'server', MODEL: 'withheld' };
  const env = { API_KEY: 'child', DSH_ACP_MODEL: 'scripted', PATH: '/child', TERM: 'xterm' };
  const scrubbed = subagentEnvironment(ambient, { env, envMode: 'scrub', envAllow: ['MODEL'] }, ['MODEL']);
  t.match(scrubbed, { ...env, EDITOR: 'vi', NO_COLOR: '1' });
  t.notOk('MODEL' in scrubbed, 'the list counts in the other mode only');
  const listed = subagentEnvironment(ambient, { env: {}, envMode: 'allow', envAllow: ['EDITOR'] });
  t.match(listed, { PATH: '/bin', EDITOR: 'vi' });
  t.notOk('API_KEY' in listed || 'MODEL' in listed);
});
