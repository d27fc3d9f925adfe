/** What of a git configuration may stay that a command has written without anybody having been asked. */
import t from 'tap';
import { harmlessConfig } from '../../../../../src/worker/broker/sandbox/harmless-git-config.ts';

const cloned = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = https://example.org/a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "feature/x-1"]
	remote = origin
	merge = refs/heads/feature/x-1
[user]
	name = Some One
	email = a@example.org
`;

t.test('what git itself writes for a new repository is harmless', async (t) => {
  t.same(harmlessConfig(cloned), { text: cloned, isHarmless: true });
  for (const url of ['git@example.org:a/b.git', 'ssh://git@example.org/a', '/srv/a.git', 'file:///srv/a.git']) {
    t.equal(harmlessConfig(`[remote "origin"]\n\turl = ${url}\n`).isHarmless, true, url);
  }
});

t.test('whatever can run something, or is not plainly a known line, goes; the rest stays', async (t) => {
  const dangerous = [
    '[core]\n\tfsmonitor = ./x',
    '[core]\n\thooksPath = evil',
    '[core]\n\tsshCommand = evil',
    '[core]\n\teditor = evil',
    '[core]\n\tworktree = /home/me',
    '[core]\n\tfilemode = true \\\n\tfsmonitor = x',
    '[core] fsmonitor = x',
    '[core]\n\tbare = false ; [core]',
    '[include]\n\tpath = evil',
    '[includeIf "gitdir:**"]\n\tpath = evil',
    '[alias]\n\tst = !evil',
    '[filter "x"]\n\tclean = evil',
    '[diff "x"]\n\ttextconv = evil',
    '[credential]\n\thelper = !evil',
    '[remote "origin"]\n\turl = ext::sh -c evil',
    '[remote "origin"]\n\turl = ssh://-oProxyCommand=evil/x',
    '[remote "origin"]\n\turl = git@-oProxyCommand=x:y',
    '[remote "origin"]\n\tuploadpack = evil',
    '[remote "origin"]\n\tvcs = evil',
    '[branch "a"]\n\tremote = ext::evil',
    '[submodule "x"]\n\tupdate = !evil',
    '[url "ext::evil"]\n\tinsteadOf = https://',
    '[core.x]\n\tfilemode = true',
    '# a comment',
    'fsmonitor = x',
  ];
  for (const lines of dangerous) {
    const { text, isHarmless } = harmlessConfig(`${lines}\n${cloned}`);
    t.equal(isHarmless, false, JSON.stringify(lines));
    t.notMatch(text, /evil|fsmonitor|hooksPath|worktree|\\/);
    t.ok(text.endsWith(cloned));
  }
});
