/** From a workspace to the arguments of bubblewrap: what is bound is what was looked at, and nothing that was put in its place. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Bubblewrap } from '../../../../../src/worker/broker/sandbox/bubblewrap.ts';
import { openPlace } from '../../../../../src/worker/broker/sandbox/directory-handle.ts';
import { type HiddenPlaces, hiddenPlaces } from '../../../../../src/worker/broker/sandbox/hidden-places.ts';
import { type MountWish, planMounts } from '../../../../../src/worker/broker/sandbox/mounts.ts';
import { openMounts } from '../../../../../src/worker/broker/sandbox/open-mounts.ts';
import { insideEnvironment, withheldInside } from '../../../../../src/worker/broker/sandbox/sandbox-environment.ts';
import { boundSockets } from '../../../../../src/worker/broker/sandbox/unix-sockets.ts';

const linux = process.platform === 'linux' ? {} : { skip: 'descriptors of paths are Linux only' };
const moved = { message: /is not where it was: a link or a directory was swapped/ };
const nothingHidden: HiddenPlaces = { hidden: [], shown: [], sockets: [] };

function scene(t: Test) {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-mounts-')));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const [work, outside] = [join(dir, 'work'), join(dir, 'outside')] as const;
  for (const one of ['work/.git/hooks', 'work/deep/nested/.git/hooks', 'outside/hooks']) mkdirSync(join(dir, one), { recursive: true });
  for (const one of ['work/.git/config', 'work/.git/HEAD', 'work/.envrc', 'work/deep/nested/.git/config', 'work/deep/nested/.git/HEAD']) {
    writeFileSync(join(dir, one), '');
  }
  const dotGits = [join(work, '.git'), join(work, 'deep/nested/.git')];
  const wish: MountWish = { roots: [work], writable: [], tmp: undefined, spillDir: undefined, dotGits };
  return { dir, work, outside, wish };
}

t.test('what other programs trust is bound read-only, behind what holds it in its place', linux, async (t) => {
  const { work, wish } = scene(t);
  const opened = await openMounts((await planMounts(wish, nothingHidden)).mounts, false);
  const expected = [
    ['--tmpfs', '/tmp'],
    ['--bind', work, work],
    ['--bind', `${work}/.git`, `${work}/.git`],
    ['--bind', `${work}/deep/nested/.git`, `${work}/deep/nested/.git`],
    ...['.git/config', '.git/hooks', 'deep/nested/.git/config', 'deep/nested/.git/hooks', '.envrc'].map((name) => {
      return ['--ro-bind', `${work}/${name}`, `${work}/${name}`];
    }),
  ];
  t.same(opened.args, expected.flat());
  t.same(opened.descriptors, []);
  const free = await openMounts((await planMounts({ ...wish, writable: [`${work}/.git`] }, nothingHidden)).mounts, false);
  t.notMatch(free.args.join(' '), `--ro-bind ${work}/.git/`, 'but for what the settings open');
});

t.test('a link that has taken the place of what was looked at is not bound', linux, async (t) => {
  const { work, outside, wish } = scene(t);
  const { mounts } = await planMounts(wish, nothingHidden);
  renameSync(join(work, '.git'), join(work, 'g'));
  symlinkSync(outside, join(work, '.git'));
  await t.rejects(openMounts(mounts, true), moved);
  await t.rejects(openMounts(mounts, false), moved);
  await t.rejects(openPlace(join(work, '.git/hooks')), moved, 'nor is what a link leads through');
  t.equal(await openPlace(join(work, 'absent')), undefined);
});

t.test('what is swapped behind the look is not what bubblewrap binds', linux, async (t) => {
  const { work, outside, wish } = scene(t);
  const bubblewrap = new Bubblewrap({ platform: process.platform, ambient: {}, own: [] });
  const found = await bubblewrap.find();
  if (!found.ok || !found.takesDescriptors) {
    t.pass('no bubblewrap here that takes descriptors');
    return;
  }
  const start = { cwd: work, network: 'off', ...wish } as const;
  const command = { command: 'sh', args: ['-c', 'touch .git/made; ls -l /proc/[0-9]*/fd | grep -c outside'] };
  const wrapped = await bubblewrap.wrap(command, found, start);
  renameSync(join(work, '.git'), join(work, 'g'));
  mkdirSync(join(work, '.git/hooks'), { recursive: true });
  writeFileSync(join(work, '.git/config'), '');
  const run = ({ argv, descriptors }: typeof wrapped) =>
    spawnSync(argv.command, [...argv.args], { stdio: ['ignore', 'pipe', 'pipe', ...descriptors], encoding: 'utf8' });
  const swapped = run(wrapped);
  await wrapped.close();
  t.equal(existsSync(join(work, '.git/made')), false, swapped.stderr);
  // The root itself, swapped for a link to elsewhere.
  rmSync(join(work, '.git'), { recursive: true });
  renameSync(join(work, 'g'), join(work, '.git'));
  const again = await bubblewrap.wrap(command, found, start);
  renameSync(work, `${work}-moved`);
  symlinkSync(outside, work);
  run(again);
  await again.close();
  t.same(readdirSync(outside), ['hooks'], 'nothing is made where the link leads');
});

t.test('sockets are hidden wherever they are, and so is what names them', async (t) => {
  const table = join(t.testdir({}), 'unix');
  writeFileSync(
    table,
    [
      'Num       RefCount Protocol Flags    Type St Inode Path',
      '00000000a4f03876: 00000002 00000000 00010000 0001 01 30944 /home/me/odd place/docker.sock',
      '00000000a4f03876: 00000002 00000000 00010000 0001 01 30945 @/tmp/.X11-unix/X0',
      '00000000a4f03876: 00000003 00000000 00000000 0001 03 30946',
      '00000000a4f03876: 00000002 00000000 00010000 0001 01 30947 relative',
    ].join('\n'),
  );
  t.same(await boundSockets(table), ['/home/me/odd place/docker.sock']);
  t.same(await boundSockets(join(table, 'absent')), []);
  const { mounts } = await planMounts(
    { roots: [], writable: ['/dev/null'], tmp: undefined, spillDir: undefined, dotGits: [] },
    { ...nothingHidden, sockets: ['/dev/null', '/x/odd.sock'] },
  );
  t.match(
    mounts,
    [{ path: '/tmp' }, { kind: 'blank', path: '/x/odd.sock' }, { path: '/dev/null', kind: 'bind' }],
    'but one that the settings open',
  );
  const ambient = {
    DISPLAY: ':0',
    WAYLAND_DISPLAY: 'w',
    XAUTHORITY: '/x',
    SSH_AUTH_SOCK: '/a',
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/b',
    DOCKER_HOST: 'unix:///var/run/d.sock',
    PATH: '/bin',
  };
  const leading = Object.keys(ambient).filter((name) => name !== 'PATH');
  t.same(new Set(withheldInside(ambient, [])), new Set(leading));
  t.same(new Set(withheldInside(ambient, ['/var/run/d.sock', '/b'])), new Set(leading.filter((name) => !/^D(BUS|OCKER)/.test(name))));
  t.match(insideEnvironment({ HOME: '/h' }, []), { TMPDIR: '/tmp', npm_config_cache: '/tmp/.npm' });
  const places = await hiddenPlaces({ ambient: {}, own: [] }, []);
  t.notMatch(places.shown, ['/run/systemd/resolve'], 'of the resolver no more than the file with its address');
});
