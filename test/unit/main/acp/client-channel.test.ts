/** Requests of session threads to the client: who may ask what, and that each ends once, also when the client does not play along. */
import { type AgentContext, agent, client, RequestError } from '@agentclientprotocol/sdk';
import t, { type Test } from 'tap';
import { ClientChannel } from '../../../../src/main/acp/client-channel.ts';
import type { Profile } from '../../../../src/shared/config.ts';
import type { ClientAnswer, ClientRequest, ClientTraits } from '../../../../src/shared/thread-protocol.ts';

const everything: ClientTraits = { terminalOutput: false, readTextFile: true, writeTextFile: true, elicitationForm: true };
const written = { batchTaken: async () => undefined };

interface Setting {
  readonly traits?: ClientTraits;
  readonly profile?: Profile;
  readonly answer?: (method: string, params: any) => unknown;
  readonly client?: AgentContext | 'none';
}

function rig({ traits = everything, profile = 'editor', answer = () => ({ content: 'x' }), client: given }: Setting = {}) {
  const asked: { method: string; params: any; options: any }[] = [];
  const fake = {
    request: async (method: string, params: unknown, options: unknown) => {
      asked.push({ method, params, options });
      return await answer(method, params);
    },
  } as unknown as AgentContext;
  const channel = new ClientChannel(
    () => (given === 'none' ? undefined : (given ?? fake)),
    (id) => (id === 's' || id === 'other' ? { profile, client: traits } : undefined),
  );
  const ask = (request: Partial<ClientRequest> = {}, lane = written): Promise<ClientAnswer> =>
    channel.ask(lane, {
      sessionId: 's',
      requestKey: 'r',
      method: 'fs/read_text_file',
      params: { sessionId: request.sessionId ?? 's', path: '/a' },
      afterBatch: 3,
      timeoutMs: 0,
      ...request,
    });
  return { channel, asked, ask };
}

t.test('what the client answers goes back as it is, behind the batch that must be written first', async (t) => {
  const { asked, ask } = rig({ answer: () => ({ anything: ['at', 'all'] }) });
  const steps: string[] = [];
  let take: () => void = () => undefined;
  const lane = {
    batchTaken: async (batch: number): Promise<undefined> => {
      steps.push(`batch ${batch}`);
      await new Promise<void>((resolve) => (take = resolve));
    },
  };
  const answer = ask({}, lane as never);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(asked, [], 'not yet');
  take();
  t.same(await answer, { kind: 'result', result: { anything: ['at', 'all'] } });
  t.same(steps, ['batch 3']);
  t.match(asked, [{ method: 'fs/read_text_file', params: { sessionId: 's', path: '/a' } }]);
});

t.test('nobody is asked by a session that is not open, in the name of another, or for what the client does not have', async (t) => {
  const none: ClientTraits = { terminalOutput: true };
  const cases: [string, Setting, Partial<ClientRequest>][] = [
    ['a session that is not open', {}, { sessionId: 'gone' }],
    ['the name of another session', {}, { params: { sessionId: 'other', path: '/a' } }],
    ['no session in the params', {}, { params: {} }],
    ['no client', { client: 'none' }, {}],
    ['no reading', { traits: none }, {}],
    ['no writing', { traits: none }, { method: 'fs/write_text_file' }],
    ['no forms', { traits: none }, { method: 'elicitation/create' }],
    ['a program in the place of a person', { profile: 'automation' }, { method: 'elicitation/create' }],
    ['another method', {}, { method: 'terminal/create' as never }],
  ];
  for (const [what, setting, request] of cases) {
    const { asked, ask } = rig(setting);
    t.same(await ask(request), { kind: 'unavailable' }, what);
    t.same(asked, [], what);
  }
  for (const method of ['fs/read_text_file', 'fs/write_text_file', 'elicitation/create'] as const) {
    t.match(await rig().ask({ method }), { kind: 'result' }, method);
  }
  t.match(await rig({ profile: 'automation' }).ask(), { kind: 'result' }, 'files are a program’s, too');
});

t.test('errors are told by their number; a connection that breaks is none', async (t) => {
  const refuse = (error: Error) => () => {
    throw error;
  };
  const refused = rig({ answer: refuse(new RequestError(-32002, 'Resource not found')) });
  t.same(await refused.ask(), { kind: 'error', code: -32002, message: 'Resource not found' });
  t.same(await rig({ answer: refuse(new Error('ACP connection closed')) }).ask(), { kind: 'unavailable' });
});

/** A channel to a client of the SDK, which answers when the test says so. */
async function realClient(t: Test) {
  const open: { params: any; answer: (result: unknown) => void; cancelled: boolean }[] = [];
  let arrived: () => void = () => undefined;
  const app = client().onRequest('fs/read_text_file', async ({ params, signal }) => {
    const one = { params, answer: (_result: unknown): void => undefined, cancelled: false };
    signal.addEventListener('abort', () => {
      one.cancelled = true;
      arrived();
    });
    const result = new Promise<unknown>((resolve) => (one.answer = resolve));
    open.push(one);
    arrived();
    return (await result) as { content: string };
  });
  const connection = agent({ name: 'test' }).connect(app);
  t.teardown(() => connection.close());
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise<void>((resolve) => (arrived = resolve));
  };
  return { ...rig({ client: connection.client }), open, until };
}

t.test('several are open at once, and answered in any order', async (t) => {
  const { ask, open, until } = await realClient(t);
  const answers = ['one', 'two', 'three'].map((requestKey) => ask({ requestKey, params: { sessionId: 's', path: `/${requestKey}` } }));
  await until(() => open.length === 3);
  for (const one of open.toReversed()) one.answer({ content: one.params.path });
  t.same(
    (await Promise.all(answers)).map((answer) => (answer.kind === 'result' ? (answer.result as any).content : answer.kind)),
    ['/one', '/two', '/three'],
  );
});

t.test('what is withdrawn or late ends at once, the client is told, and its late answer changes nothing', async (t) => {
  const { channel, ask, open, until } = await realClient(t);
  const withdrawn = ask({ requestKey: 'one' });
  const late = ask({ requestKey: 'two', timeoutMs: 5 });
  const kept = ask({ requestKey: 'three', sessionId: 'other' });
  await until(() => open.length === 3);
  channel.withdraw('s', 'one');
  channel.withdraw('s', 'three');
  channel.withdraw('s', 'nobody');
  t.same(await withdrawn, { kind: 'withdrawn' });
  t.same(await late, { kind: 'timeout' });
  await until(() => open.filter(({ cancelled }) => cancelled).length === 2);
  for (const one of open) one.answer({ content: 'late' });
  t.match(await kept, { kind: 'result' }, 'the key of another session');
});

t.test('a session that lost its thread leaves no request open; one that was withdrawn before it was sent is not sent', async (t) => {
  const { channel, ask, open, until } = await realClient(t);
  const [mine, other] = [ask(), ask({ sessionId: 'other' })];
  await until(() => open.length === 2);
  channel.withdrawSession('s');
  t.same(await mine, { kind: 'withdrawn' });
  open[1]?.answer({ content: 'x' });
  t.match(await other, { kind: 'result' });

  let take: () => void = () => undefined;
  const lane = { batchTaken: () => new Promise<undefined>((resolve) => (take = () => resolve(undefined))) };
  const unsent = ask({ requestKey: 'unsent' }, lane);
  channel.withdraw('s', 'unsent');
  take();
  t.same(await unsent, { kind: 'withdrawn' });
  t.equal(open.length, 2);
});
