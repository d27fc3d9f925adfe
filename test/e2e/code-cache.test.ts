/** What an earlier start kept of the compiled code: it makes the next start quicker, and never another one. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { endServer, startServer } from '../support/started-server.ts';

t.test('a server keeps its compiled code, and goes without it where the file is damaged or taken away', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-acp-code-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const env = { DSH_ACP_CODE_CACHE: folder };
  const greet = async (name: string, wait = false): Promise<void> => {
    const server = await startServer(t, { env });
    const { result } = await server.prompt(await server.newSession(tmpdir()), 'say hello');
    t.equal(result?.stopReason, 'end_turn', name);
    if (wait) await codeAppears(folder);
    await endServer(t, server);
  };
  await greet('the first start', true);
  const [name = ''] = readdirSync(folder);
  const file = join(folder, name);
  const kept = readFileSync(file);
  await greet('with the code');
  t.same(readFileSync(file), kept, 'it is kept once');
  for (const [what, bytes] of Object.entries({ damaged: spoiled(kept), empty: Buffer.alloc(0) })) {
    writeFileSync(file, bytes);
    await greet(what);
  }
  t.same(readdirSync(folder), [name], 'no drafts');
  rmSync(folder, { recursive: true });
  await greet('without the folder');
  t.notOk(existsSync(file), 'and a start that ends at once leaves nothing');
});

t.test('a wrong place for it ends the start in words', async (t) => {
  const server = await startServer(t, { env: { DSH_ACP_CODE_CACHE: 'here' }, initialize: false });
  t.match(await server.exited, { code: 2 });
  t.match(server.stderr, /DSH_ACP_CODE_CACHE: expected `off` or an absolute path, came "here" \(environment\)/);
});

/** The draft comes first, and gets its name when it is whole. */
async function codeAppears(folder: string): Promise<void> {
  const isThere = (): boolean => readdirSync(folder).some((name) => name.endsWith('.bin'));
  await new Promise<void>((resolve) => {
    const watcher = watch(folder, () => look());
    const look = (): void => {
      if (!isThere()) return;
      watcher.close();
      resolve();
    };
    look();
  });
}

function spoiled(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length >> 1]! ^= 0xff;
  return copy;
}
