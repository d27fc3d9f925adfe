/**
 * Sessions that a client has shaped: a persona, fewer tools, and an answer that must meet a schema.
 */
import t from 'tap';
import type { JsonObject } from '../../../../src/shared/errors.ts';
import { AgentRig, assertLegal, call, prompt, say, tool } from './agent-rig.ts';

const echo = tool('echo', async () => ({ text: 'echo', isError: false }), true);
const other = tool('other', async () => ({ text: 'other', isError: false }), true);
const verdict: JsonObject = {
  type: 'object',
  properties: { good: { type: 'boolean' }, why: { type: 'string' } },
  required: ['good'],
  additionalProperties: false,
};
const rigOf = (script: ReturnType<typeof say>[], outputSchema: JsonObject = verdict, more: object = {}) =>
  new AgentRig(script, { tools: [echo], options: { outputSchema, ...more } });

t.test('a persona stands behind the instructions', async (t) => {
  const rig = new AgentRig([say('Arr.')], { options: { persona: 'You are a pirate.' } });
  await rig.agent.send(prompt('go'));
  t.match(rig.requests[0]?.system, /^Be brief\.\n\nWorking directory: [^]*Tools: none\n\nYou are a pirate\.$/);
});

t.test('a tool that was not named is as unknown as one that does not exist', async (t) => {
  const rig = new AgentRig([call(['other', {}], ['echo', {}]), say('done')], { tools: [echo, other], options: { tools: ['echo'] } });
  await rig.agent.send(prompt('go'));
  t.strictSame(
    rig.requests[0]?.tools.map(({ name }) => name),
    ['echo'],
  );
  t.match(rig.requests[0]?.system, /Tools: echo$/);
  t.match(rig.of('tool/result'), [{ code: 'UNKNOWN_TOOL', text: /no tool named "other". The tools are: echo\./ }, { text: 'echo' }]);
  t.equal(rig.requests[0]?.tools, rig.requests[1]?.tools, 'the same list each time');
  const none = new AgentRig([say('done')], { tools: [echo], options: { tools: [] } });
  await none.agent.send(prompt('go'));
  t.strictSame(none.requests[0]?.tools, []);
});

t.test('the answer that meets the schema ends the turn, behind the other calls of its step', async (t) => {
  const rig = rigOf([call(['echo', {}]), call(['final_answer', { good: true }], ['echo', {}]), say('never')]);
  const end = await rig.agent.send(prompt('go'));
  t.match(end, { reason: { kind: 'completed' }, structured: { good: true }, usage: { steps: 2, toolCalls: 2 } });
  t.strictSame(rig.of('turn/end')[0]?.structured, { good: true });
  t.match(rig.of('tool/result').slice(1), [{ text: 'The answer was taken.' }, { text: 'echo' }]);
  t.strictSame(rig.permissionsAsked.length, 2, 'nobody is asked about an answer');
  t.match(rig.requests[0]?.system, /calling final_answer/);
  t.match(rig.requests[0]?.tools.find(({ name }) => name === 'final_answer')?.parameters, verdict);
  assertLegal(rig);
  t.strictSame(rig.notices, []);
});

t.test('every turn owes an answer of its own', async (t) => {
  const rig = rigOf([call(['final_answer', { good: true }]), call(['final_answer', { good: false }])]);
  t.match(await rig.agent.send(prompt('one')), { structured: { good: true } });
  t.match(await rig.agent.send(prompt('two')), { structured: { good: false } });
});

t.test('a schema of another kind stands in a member, and its references hold', async (t) => {
  const list: JsonObject = { type: 'array', items: { $ref: '#/$defs/name' }, $defs: { name: { type: 'string', minLength: 2 } } };
  const rig = rigOf([call(['final_answer', { answer: ['x'] }]), call(['final_answer', { answer: ['xy'] }])], list);
  const end = await rig.agent.send(prompt('go'));
  t.strictSame(end.structured, ['xy']);
  t.match(rig.of('tool/result')[0], { isError: true, code: 'INVALID_ARGS' });
  const tree: JsonObject = { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#' } }] };
  const nested = rigOf([call(['final_answer', { answer: [[null], 3] }]), call(['final_answer', { answer: [[null], []] }])], tree);
  t.strictSame((await nested.agent.send(prompt('go'))).structured, [[null], []]);
});

t.test('a schema that cannot be used is an answer that is never met, not a crash', async (t) => {
  const rig = rigOf(
    Array.from({ length: 9 }, () => call(['final_answer', {}])),
    { type: 'object', properties: { a: { $ref: '#/nowhere' } }, required: ['a'] },
  );
  t.match(await rig.agent.send(prompt('go')), { reason: { kind: 'error', code: 'OUTPUT_SCHEMA_UNMET' } });
  assertLegal(rig);
});

t.test('text alone is sent back twice, then the turn fails', async (t) => {
  const rig = rigOf([say('I think it is good.'), say('Really.'), say('Believe me.'), say('never')]);
  const end = await rig.agent.send(prompt('go'));
  t.match(end, { reason: { kind: 'error', code: 'OUTPUT_SCHEMA_UNMET' }, usage: { steps: 3 }, text: 'Believe me.' });
  t.match(rig.notices, [/Call final_answer now/, /Call final_answer now/]);
  t.notOk('structured' in end);
  assertLegal(rig);
  const late = rigOf([say('It is good.'), call(['final_answer', { good: true }])]);
  t.match(await late.agent.send(prompt('go')), { reason: { kind: 'completed' }, structured: { good: true }, text: /on it|It is good/ });
});

t.test('answers that miss the schema are told why, and not for ever', async (t) => {
  const rig = rigOf(Array.from({ length: 9 }, () => call(['final_answer', { good: 'yes' }])));
  const end = await rig.agent.send(prompt('go'));
  t.match(end, { reason: { kind: 'error', code: 'OUTPUT_SCHEMA_UNMET' }, usage: { steps: 5 } });
  t.match(rig.of('tool/result')[0]?.text, /good: expected boolean, got string/);
  assertLegal(rig);
});

t.test('a budget of tool calls does not stand in the way of the answer, and the last words ask for it', async (t) => {
  const rig = rigOf([call(['echo', {}], ['echo', {}], ['final_answer', { good: true }])]);
  const end = await rig.agent.send(prompt('go'), { budget: { maxToolCalls: 1, maxSteps: 1 } });
  t.match(end, { reason: { kind: 'completed' }, structured: { good: true }, usage: { toolCalls: 1 } });
  t.match(rig.notices, [/Finish now: call final_answer with what you have/]);
  assertLegal(rig);
});

t.test("a person's word that waits comes before the end", async (t) => {
  const rig = rigOf([call(['final_answer', { good: true }]), call(['final_answer', { good: false }])]);
  rig.onPoint = () => {
    if (rig.of('tool/call').length === 1 && rig.of('user/message').length === 1) rig.agent.steer(prompt('look again'));
  };
  t.match(await rig.agent.send(prompt('go')), { structured: { good: false }, usage: { steps: 2 } });
});

t.test('a turn that is cancelled behind its answer has none', async (t) => {
  const rig = rigOf([call(['final_answer', { good: true }], ['slow', {}])]);
  rig.onPoint = () => {
    if (rig.of('tool/start').length === 1) rig.agent.cancel();
  };
  const end = await rig.agent.send(prompt('go'));
  t.match(end.reason, { kind: 'cancelled' });
  t.notOk('structured' in end);
  assertLegal(rig);
});
