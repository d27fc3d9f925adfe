/**
 * Conversations of the clients that people use, as each of them speaks: its own capabilities and habits, played against the built
 * server. What must hold is written in `rules.ts` for all and in `client-rules.ts` for each.
 */
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import PQueue from 'p-queue';
import t, { type Test } from 'tap';
import { projectRoot } from '../support/server-process.ts';
import { endServer } from '../support/started-server.ts';
import { recordedClients, type RecordedClient } from './client-rules.ts';
import { ConversationClient, playConversation } from './conversation.ts';
import { Recording } from './recording.ts';
import { commonRules, type Rule } from './rules.ts';
import { tampered, tamperings } from './tampered.ts';

const stock = 'export const reorder = (item) => item.quantity < item.minimum;\n';
const files = () => ({ 'README.md': '# Stock\n', 'stock.js': stock, src: { 'rules.js': 'export const minimum = 3;\n' } });
const mcp = join(projectRoot, 'build/test/support/mcp-server-main.js');

t.setTimeout(100_000);

const stage = realpathSync(
  t.testdir(
    Object.fromEntries(recordedClients.map(({ name }) => [name, { work: files(), other: { 'notes.md': 'in the other worktree\n' } }])),
  ),
);

/** The client behind its whole conversation. */
async function play({ name, args = [] }: RecordedClient): Promise<ConversationClient> {
  const client = new ConversationClient({ args: ['--model', 'scripted', '--pace-ms', '0', '--max-retries', '0', ...args] });
  t.teardown(() => client.dispose());
  const dir = join(stage, name);
  const places = { cwd: join(dir, 'work'), other: join(dir, 'other'), mcp };
  await playConversation(client, join(projectRoot, `test/conversations/clients/${name}.jsonl`), places);
  return client;
}

const lanes = new PQueue({ concurrency: 3 });
const plays = recordedClients.map((recorded) => {
  const played = lanes.add(() => play(recorded));
  played.catch(() => undefined); // Reported where it is awaited, which may be later.
  return { ...recorded, played };
});

for (const { name, rules, played } of plays) {
  await t.test(name, async (t) => {
    const client = await played;
    await endServer(t, client);
    const recording = new Recording(client);
    for (const { says, check } of [...commonRules, ...rules]) t.strictSame(check(recording), [], says);
    // Of the others, each has something less to change.
    if (name === 'codecompanion') checkRules(t, client, [...commonRules, ...rules]);
  });
}

/** The rules object to what agents have got wrong: each to its own. */
function checkRules(t: Test, client: ConversationClient, rules: readonly Rule[]): void {
  for (const tampering of tamperings) {
    const rule = rules.find(({ says }) => says.startsWith(tampering.rule));
    t.not(rule?.check(new Recording(tampered(client, tampering))).length, 0, `${tampering.rule} … objects to ${tampering.name}`);
  }
}
