/** What a permission request shows, for clients that look at nothing else. */
import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { PermissionCall } from '../../../../src/worker/permission/permission-gate.ts';
import { hiddenPlaces } from '../../../../src/worker/permission/hidden-places.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import type { ToolAccess } from '../../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const registry = createToolRegistry();
const settings = { profile: 'editor', model: { kind: 'scripted', paceMs: 0 } } as never;

function rig(terminalOutput = false) {
  const tools = (name: string) => registry.get(name);
  const projector = new Projector({ sessionId: 's', cwd: '/ws', profile: 'editor', client: { terminalOutput }, settings, tools });
  /** Shows the call, then asks about it. */
  const ask = (name: string, args: object, access: ToolAccess, reason?: string) => {
    const tool = registry.get(name)!;
    const event: EventInput = { type: 'tool/call', data: { turn: 1, step: 1, callId: 'c', name, arguments: JSON.stringify(args) } };
    projector.project(event);
    const view = tool.presentCall(args, { cwd: '/ws' });
    const call: PermissionCall = { turn: 1, callId: 'c', toolName: name, access, view, rawInput: args as never };
    return projector.permissionToolCall(call, reason);
  };
  const decided: EventInput = { type: 'permission/decided', data: { turn: 1, callId: 'c', outcome: 'allow-once', by: 'client' } };
  return { ask, decide: () => projector.project(decided) };
}
const run = (command: string): ToolAccess => ({ kind: 'execute', command, cwd: '/ws' });
const texts = (toolCall: any): unknown[] => toolCall.content.map((block: any) => block.content?.text ?? block.type);

t.test('a change: the diff stands first, the reason last, and the arguments are there', async (t) => {
  const args = { file_path: '/etc/hosts', old_string: 'a', new_string: 'b' };
  const toolCall = rig().ask('edit', args, { kind: 'write', paths: ['/etc/hosts'] }, 'This path lies outside the workspace.');
  t.match(toolCall, {
    title: 'Edit /etc/hosts',
    kind: 'edit',
    status: 'pending',
    locations: [{ path: '/etc/hosts' }],
    rawInput: args,
    content: [{ type: 'diff', path: '/etc/hosts', oldText: 'a', newText: 'b' }, { type: 'content' }],
  });
  t.same(texts(toolCall), ['diff', 'This path lies outside the workspace.']);
  const params = { sessionId: 's', toolCall, options: [{ optionId: 'a', name: 'A', kind: 'allow_once' }] };
  t.same(validateAgentFrame({ jsonrpc: '2.0', id: 1, method: 'session/request_permission', params }), []);
});

t.test('a command: exactly as it would run, whatever its title leaves out', async (t) => {
  const plain = { command: 'npm test', description: 'Run the tests' };
  t.same(texts(rig().ask('bash', plain, run('npm test'))), ['```sh\nnpm test\n```', 'Run the tests']);
  const script = 'if true; then\n  echo a\nfi';
  const shown = rig().ask('bash', { command: script, description: 'x' }, run(script), 'why');
  t.same(texts(shown), [`\`\`\`sh\n${script}\n\`\`\``, 'x', 'why'], 'lines as they are');
  const long = `echo ${'x'.repeat(400)}\nrm -rf build`;
  t.same(texts(rig().ask('bash', { command: long, description: 'x' }, run(long))), [`\`\`\`sh\n${long}\n\`\`\``, 'x'], 'whole, and once');
  const hidden = 'echo a\u202eb';
  t.same(texts(rig().ask('bash', { command: hidden, description: '' }, run(hidden))), [`\`\`\`sh\n${hidden}\n\`\`\``]);
  const background = { command: 'sleep 9', description: 'Wait', run_in_background: true };
  t.same(texts(rig().ask('bash', background, run('sleep 9'))), ['```sh\nsleep 9\n```', 'Wait']);
});

t.test('a terminal stays in the card, and what stood in it for the question alone is taken out again', async (t) => {
  const quiet = rig(true);
  t.same(texts(quiet.ask('bash', { command: 'ls', description: 'List' }, run('ls'))), ['List', 'terminal']);
  t.same(quiet.decide(), [], 'nothing was added');
  const reasoned = rig(true);
  const toolCall = reasoned.ask('bash', { command: 'ls\npwd', description: 'List' }, run('ls\npwd'), 'A rule asks.');
  t.same(texts(toolCall), ['```sh\nls\npwd\n```', 'List', 'terminal', 'A rule asks.']);
  t.match(toolCall, { _meta: { terminal_info: { terminal_id: 'c' } } });
  const [restored, ...more] = reasoned.decide();
  t.match(restored, { sessionUpdate: 'tool_call_update', toolCallId: 'c' });
  t.same(texts(restored), ['List', 'terminal']);
  t.same([more, reasoned.decide()], [[], []]);
});

t.test('where a call leads that its card does not show is said', async (t) => {
  const view = { card: 'generic', title: 'Read a', locations: [{ path: '/ws/a' }] } as const;
  const paths = (...canonical: (string | undefined)[]) => ({
    kind: 'read' as const,
    paths: canonical.map((one) => ({ given: '/ws/a', canonical: one })),
  });
  t.equal(hiddenPlaces(view, paths('/ws/a')), undefined);
  t.equal(hiddenPlaces(view, paths('/etc/passwd')), 'It leads to "/etc/passwd".');
  t.equal(hiddenPlaces(view, paths(undefined)), undefined);
  t.match(hiddenPlaces(view, paths(...Array.from({ length: 10 }, (_, index) => `/x/${index}`))), /"\/x\/7" and 2 more\.$/);
  const diff = { card: 'diff', title: 'Edit', diffs: [{ path: '/ws/a', oldText: null, newText: '' }] } as const;
  t.equal(hiddenPlaces(diff, paths('/ws/a')), undefined);
  const terminal = { card: 'terminal', title: 'ls' } as const;
  t.equal(hiddenPlaces(terminal, { kind: 'execute', command: 'ls', cwd: '/ws/link', canonicalCwd: '/ws/real' }), 'It runs in "/ws/real".');
  t.equal(hiddenPlaces(terminal, { kind: 'execute', command: 'ls', cwd: '/ws', canonicalCwd: '/ws' }), undefined);
});
