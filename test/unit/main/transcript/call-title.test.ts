/** Titles and icons of cards are those that the tools themselves give an editor. */
import t from 'tap';
import { parseArguments } from '../../../../src/main/transcript/call-parts.ts';
import { callTitle } from '../../../../src/main/transcript/call-title.ts';
import { defaultSelf } from '../../../../src/main/config/subagents/parse-subagents.ts';
import { mcpPresenter } from '../../../../src/worker/mcp/mcp-presenter.ts';
import { createToolRegistry, everyExtra } from '../../../../src/worker/tools/all-tools.ts';

const cwd = '/srv/project';
const registry = createToolRegistry([defaultSelf()], everyExtra);

const calls: Readonly<Record<string, readonly object[]>> = {
  read: [
    { file_path: 'src/a.ts' },
    { file_path: '/etc/hosts', offset: 3 },
    { file_path: '/srv/project/b', offset: 10, limit: 31 },
    { file_path: '../c', limit: 5 },
  ],
  write: [{ file_path: 'a.ts', content: 'x' }],
  edit: [{ file_path: '/srv/project/src/a.ts', old_string: 'a', new_string: 'b' }],
  glob: [{ pattern: '*.ts' }, { pattern: '*.ts', path: '/srv/project' }],
  grep: [{ pattern: 'a b' }, { pattern: 'x', path: 'src', include: '*.ts' }],
  bash: [
    { command: 'npm test', description: 'Test' },
    { command: 'a\nb', description: '' },
  ],
  bash_output: [{ task_id: 't1' }],
  bash_kill: [{ task_id: 't1' }],
  todo_write: [
    { todos: [] },
    {
      todos: [
        { content: 'a', status: 'completed' },
        { content: 'b', status: 'pending' },
      ],
    },
  ],
  exit_plan_mode: [{ plan: 'First this.' }],
  ask_user: [{ questions: [{ question: 'Which one?' }, { question: 'And?' }] }],
  subagent: [
    { description: 'Look around', prompt: 'x' },
    { description: 'Look around', prompt: 'x', agent: 'self' },
  ],
  subagent_output: [{ job_id: 'j1' }],
  subagent_kill: [{ job_id: 'j1' }],
};

const kindOf = (view: { readonly card: string; readonly kind?: string | undefined }): string =>
  ({ terminal: 'execute', diff: 'edit' })[view.card] ?? view.kind ?? 'other';

t.test('every tool has the title and the icon that its own presenter gives', async (t) => {
  t.same(new Set(Object.keys(calls)), new Set(registry.schemas().map(({ name }) => name)), 'none is forgotten');
  for (const [name, list] of Object.entries(calls)) {
    for (const args of list) {
      const view = registry.get(name)!.presentCall(args, { cwd });
      const { text, kind } = callTitle({ name, mcp: undefined }, args as never, cwd);
      t.same([text, kind], [view.title, kindOf(view)], `${name} ${JSON.stringify(args)}`);
    }
  }
});

t.test('so has a tool of an MCP server', async (t) => {
  const mcp = { server: 'issues', tool: 'search', kind: 'fetch' } as const;
  for (const args of [{}, { limit: 3 }, { text: 'later', query: 'open bugs' }, { odd: 'x'.repeat(200) }]) {
    const view = mcpPresenter(mcp).presentCall(args, { cwd });
    const { text, kind } = callTitle({ name: 'mcp__issues__search', mcp }, args, cwd);
    t.same([text, kind], [view.title, kindOf(view)]);
  }
});

t.test('a tool that is not known, and arguments that are not as they should be, are told by what is there', async (t) => {
  const title = (name: string, args: string) => callTitle({ name, mcp: undefined }, parseArguments(args), cwd).text;
  t.equal(title('later', '{"n":1,"target":"x"}'), 'later x');
  t.equal(title('later', '{}'), 'later');
  t.equal(title('read', '{"file_path":'), 'read');
  t.equal(title('read', '{"file_path":7}'), 'read');
  t.equal(title('toString', '{}'), 'toString');
  t.equal(title('bash', JSON.stringify({ command: 'echo \u001b[2J' })), 'echo \u2039ESC\u203a[2J');
});
