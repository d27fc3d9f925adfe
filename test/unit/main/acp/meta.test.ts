import t from 'tap';
import type { SubagentProvider } from '../../../../src/shared/subagent-protocol.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import type { PromptBlock } from '../../../../src/shared/events.ts';
import { subagentToolNames, toolNames } from '../../../../src/shared/tool-names.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import type { ToolRegistry } from '../../../../src/worker/tools/registry.ts';
import { requestedProfile } from '../../../../src/main/acp/meta/profile.ts';
import { promptOptions } from '../../../../src/main/acp/meta/prompt-options.ts';
import { newSessionOptions, openSessionOptions } from '../../../../src/main/acp/meta/session-options.ts';

const subagents: SubagentProvider[] = [];
const priceList = { input: 1, output: 2, cacheRead: 0.1 };
const server = { prices: priceList, subagents };
const content: PromptBlock[] = [{ type: 'text', text: 'hello' }];
const meta = (value: unknown): { _meta: Record<string, unknown> } => ({ _meta: { 'dsh-acp': value, 'other.vendor': { anything: [1] } } });

/** What a refusal says, or that there was none. */
async function refused(act: () => unknown): Promise<string> {
  try {
    await act();
    return 'accepted';
  } catch (error) {
    if (!(error instanceof ServerError) || error.code !== 'INVALID_PARAMS') throw error;
    return `${JSON.stringify(error.data?.['field']).replaceAll('\\"', '"').slice(1, -1)} | ${error.message}`;
  }
}

t.test('nothing under our name asks for nothing, whatever other vendors say', async (t) => {
  for (const params of [{}, { _meta: null }, { _meta: undefined }, { _meta: { 'other.vendor': { budget: 'much' } } }, meta({})]) {
    t.same(await newSessionOptions(params, { prices: undefined, subagents }), {});
    t.same(openSessionOptions(params), {});
    t.same(promptOptions(params, content, undefined), {});
    t.equal(requestedProfile(params), undefined);
  }
});

t.test('a session gets everything it may ask for, as it is kept', async (t) => {
  const asked = {
    budget: { deadline: '2026-12-01T10:00:00+02:00', maxWallMs: 1000, maxSteps: 3, maxToolCalls: 4, maxTokens: 5, maxCostUsd: 0.25 },
    policy: { rules: [{ action: 'allow', tools: ['read'] }] },
    persona: 'You review.',
    tools: ['read', 'grep'],
    outputSchema: { type: 'object', properties: { verdict: { $ref: '#/$defs/v' } }, $defs: { v: { type: 'string', pattern: '^[a-z]+$' } } },
    depth: 2,
    mode: 'read-only',
    env: { A: '1', _b2: '' },
  };
  const options = await newSessionOptions(meta(asked), server);
  t.same(options, {
    ...asked,
    budget: { ...asked.budget, deadline: Date.UTC(2026, 11, 1, 8) },
    policy: { rules: [{ name: 'rule 1', action: 'allow', tools: ['read'] }], fallback: 'deny' },
  });
  t.notOk('__absolute_uri__' in (options.outputSchema ?? {}), 'the schema is not marked by its check');
  t.same(await newSessionOptions(meta({ tools: [], budget: {} }), { prices: undefined, subagents }), { tools: [], budget: {} });
});

t.test('what is not understood, or out of bounds, is refused by its name', async (t) => {
  const cases: [unknown, RegExp][] = [
    [5, /^_meta\["dsh-acp"\] \|.*expected object/],
    [[], /^_meta\["dsh-acp"\] \|/],
    [{ bugdet: {} }, /^_meta\["dsh-acp"\]\.bugdet \|.*no such member/],
    [{ budget: { maxStep: 3 } }, /^_meta\["dsh-acp"\]\.budget\.maxStep \|/],
    [{ budget: 5 }, /\.budget \|/],
    [{ budget: { maxSteps: '3' } }, /\.budget\.maxSteps \|.*expected number/],
    [{ budget: { maxSteps: 0 } }, /\.budget\.maxSteps \|/],
    [{ budget: { maxSteps: 1.5 } }, /\.budget\.maxSteps \|/],
    [{ budget: { maxTokens: -1 } }, /\.budget\.maxTokens \|/],
    [{ budget: { maxWallMs: 1e300 } }, /\.budget\.maxWallMs \|/],
    [{ budget: { maxCostUsd: 0 } }, /\.budget\.maxCostUsd \|/],
    [{ budget: { deadline: 1_700_000_000_000 } }, /\.budget\.deadline \|/],
    [{ budget: { deadline: '2026-12-01T10:00:00' } }, /\.budget\.deadline \|.*offset/],
    [{ budget: { deadline: 'tomorrow' } }, /\.budget\.deadline \|/],
    [{ persona: ' \n' }, /\.persona \|/],
    [{ persona: 'é'.repeat(40_000) }, /\.persona \|/],
    [{ tools: 'read' }, /\.tools \|/],
    [{ tools: ['read', 'read'] }, /\.tools \|.*once/],
    [{ tools: [''] }, /\.tools\.0 \|/],
    [{ tools: ['read', 'shell'] }, /\.tools\.1 \|.*the tools are bash/],
    [{ tools: ['subagent'] }, /\.tools\.0 \|.*no such tool here/],
    [{ tools: Array.from({ length: 300 }, (_, index) => `t${index}`) }, /\.tools \|/],
    [{ outputSchema: [] }, /\.outputSchema \|/],
    [{ outputSchema: { type: 'objekt' } }, /\.outputSchema \|.*type/],
    [{ outputSchema: { properties: { a: { pattern: '(' } } } }, /\.outputSchema \|.*regular expression/],
    [{ outputSchema: { patternProperties: { '(': {} } } }, /\.outputSchema \|/],
    [{ outputSchema: { properties: { a: { $ref: '#/$defs/none' } } } }, /\.outputSchema \|.*\$ref/],
    [{ outputSchema: { $ref: 'https://example.com/schema.json' } }, /\.outputSchema \|/],
    [{ outputSchema: { $ref: '#' } }, /\.outputSchema \|/],
    [{ outputSchema: { description: 'x'.repeat(70_000) } }, /\.outputSchema \|.*bytes/],
    [{ outputSchema: JSON.parse(`${'{"not":'.repeat(150)}{}${'}'.repeat(150)}`) }, /\.outputSchema \|.*deeper/],
    [{ depth: -1 }, /\.depth \|/],
    [{ depth: 1000 }, /\.depth \|/],
    [{ sampling: { temperature: 2.1 } }, /\.sampling\.temperature \|/],
    [{ sampling: { topP: -0.1 } }, /\.sampling\.topP \|/],
    [{ sampling: { top_p: 0.5 } }, /\.sampling\.top_p \|.*no such member/],
    [{ sampling: { seed: 1.5 } }, /\.sampling\.seed \|/],
    [{ mode: 'yolo' }, /\.mode \|/],
    [{ env: { 'A-B': '1' } }, /\.env \|.*names/],
    [{ env: { A: 1 } }, /\.env\.A \|/],
    [{ env: { A: 'a\0b' } }, /\.env \|.*NUL/],
    [{ env: Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`V${index}`, ''])) }, /\.env \|.*256/],
    [{ env: { A: 'secret'.repeat(20_000) } }, /\.env \|.*bytes/],
    [{ policy: { rules: [{ action: 'maybe' }] } }, /\.policy \|.*rules\[0\]\.action/],
    [{ policy: 'deny' }, /\.policy \|/],
    [
      {
        policy: {
          rules: Array.from({ length: 900 }, (_, index) => ({
            name: `${index}`.padEnd(90, 'x'),
            action: 'deny',
            paths: ['p'.repeat(400)],
          })),
        },
      },
      /./,
    ],
  ];
  for (const [value, expected] of cases) {
    const said = await refused(() => newSessionOptions(meta(value), server));
    t.match(said, expected, JSON.stringify(value).slice(0, 80));
    t.notMatch(said, /secret|yolo|tomorrow|maybe|objekt/, 'no value');
    t.ok(said.length < 400, 'short');
  }
});

t.test('the names of the tools are those of the registry, with and without agents to delegate to', async (t) => {
  const provider = { name: 'self', description: undefined } as SubagentProvider;
  const names = (registry: ToolRegistry): string[] =>
    registry
      .schemas()
      .map(({ name }) => name)
      .sort();
  t.same(names(createToolRegistry()), [...toolNames].sort());
  t.same(names(createToolRegistry([provider])), [...toolNames, ...subagentToolNames].sort());
  t.same(await newSessionOptions(meta({ tools: ['subagent'] }), { prices: undefined, subagents: [provider] }), { tools: ['subagent'] });
  const asking = meta({ tools: ['ask_user'] });
  t.same(await newSessionOptions(asking, { prices: undefined, subagents: [], asksPerson: true }), { tools: ['ask_user'] });
  t.match(
    await refused(() => newSessionOptions(asking, { prices: undefined, subagents: [] })),
    /no such tool/,
    'where the client has no forms',
  );
});

t.test('a budget in dollars needs prices', async (t) => {
  const asked = meta({ budget: { maxCostUsd: 1 } });
  t.match(await refused(() => newSessionOptions(asked, { prices: undefined, subagents })), /budget\.maxCostUsd \|.*no prices/);
  t.match(await refused(() => promptOptions(asked, content, undefined)), /budget\.maxCostUsd \|.*no prices/);
  t.same(promptOptions(asked, content, priceList), { budget: { maxCostUsd: 1 } });
});

t.test('sampling is taken as given, zeros too', async (t) => {
  const sampling = { temperature: 0, topP: 1, seed: 0 };
  t.same(await newSessionOptions(meta({ sampling }), server), { sampling });
});

t.test('a stored session takes mode, env and readOnly, and nothing that its log keeps', async (t) => {
  t.same(openSessionOptions(meta({ mode: 'ask', env: { A: '1' }, readOnly: true })), { mode: 'ask', env: { A: '1' }, readOnly: true });
  for (const name of ['budget', 'policy', 'persona', 'tools', 'outputSchema', 'depth', 'maxDepth', 'sampling']) {
    t.match(await refused(() => openSessionOptions(meta({ [name]: {} }))), new RegExp(`\\.${name} \\|.*kept in the log`));
  }
  t.match(await refused(() => openSessionOptions(meta({ read_only: true }))), /\.read_only \|.*no such member/);
  t.match(await refused(() => newSessionOptions(meta({ readOnly: true }), server)), /\.readOnly \|/);
});

t.test('a prompt: budget, key with the hash of its content, priority, trace context', async (t) => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const options = promptOptions(meta({ key: 'k', priority: -100, traceparent, budget: { maxSteps: 1 } }), content, undefined);
  t.match(options, { key: { id: 'k', payload: /^[0-9a-f]{64}$/ }, priority: -100, traceparent, budget: { maxSteps: 1 } });
  const payload = (blocks: PromptBlock[]): unknown => promptOptions(meta({ key: 'k' }), blocks, undefined).key?.payload;
  t.equal(payload(content), options.key?.payload);
  const others: PromptBlock[][] = [
    [{ type: 'text', text: 'hello ' }],
    [...content, { type: 'text', text: '' }],
    [{ type: 'resource_link', name: 'hello', uri: 'hello' }],
  ];
  t.equal(new Set([options.key?.payload, ...others.map(payload)]).size, 4, 'another content has another hash');
  const bad: [object, RegExp][] = [
    [{ key: '' }, /\.key \|/],
    [{ key: 'x'.repeat(201) }, /\.key \|/],
    [{ key: 7 }, /\.key \|/],
    [{ priority: 101 }, /\.priority \|/],
    [{ priority: 0.5 }, /\.priority \|/],
    [{ traceparent: '00-00000000000000000000000000000000-b7ad6b7169203331-01' }, /\.traceparent \|/],
    [{ traceparent: 'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }, /\.traceparent \|/],
    [{ policy: { rules: [] } }, /\.policy \|.*no such member/],
  ];
  for (const [value, expected] of bad) t.match(await refused(() => promptOptions(meta(value), content, priceList)), expected);
});

t.test('the trace context that ACP reserves at the root of _meta is taken, and one that is invalid there is ignored', async (t) => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  t.same(promptOptions({ _meta: { traceparent } }, content, undefined), { traceparent });
  t.same(promptOptions({ _meta: { traceparent: 'nonsense' } }, content, undefined), {});
  const own = traceparent.replace('b7ad', 'c7ad');
  t.same(
    promptOptions({ _meta: { traceparent, 'dsh-acp': { traceparent: own } } }, content, undefined),
    { traceparent: own },
    'ours first',
  );
});

t.test('a connection may choose its profile', async (t) => {
  t.equal(requestedProfile(meta({ profile: 'automation' })), 'automation');
  t.equal(requestedProfile(meta({ profile: 'editor' })), 'editor');
  t.match(await refused(() => requestedProfile(meta({ profile: 'batch' }))), /\.profile \|/);
  t.match(await refused(() => requestedProfile(meta({ Profile: 'editor' }))), /\.Profile \|/);
});
