import t from 'tap';
import type { ClientTraits, SessionTask } from '../../../../src/shared/thread-protocol.ts';
import { createEditorFiles, createSessionInstructions } from '../../../../src/worker/session/session-workspace.ts';
import type { ThreadContext } from '../../../../src/worker/session/thread-context.ts';

interface TaskParts {
  readonly settings?: { readonly instructions?: 'auto' | 'off'; readonly clientFiles?: 'auto' | 'off' };
  readonly client?: Partial<ClientTraits>;
}

function task({ settings, client }: TaskParts): SessionTask {
  return {
    sessionId: 's',
    cwd: '/w',
    additionalDirectories: ['/o'],
    client: { terminalOutput: false, readTextFile: true, writeTextFile: true, ...client },
    settings: { instructions: 'auto', clientFiles: 'auto', userInstructions: undefined, ...settings },
  } as unknown as SessionTask;
}

const thread = {} as ThreadContext;

t.test('the client is asked for files only when it offers both ways, and the setting allows it', async (t) => {
  const editorOf = (parts: TaskParts) => createEditorFiles(task(parts), thread, { live: 0 });
  t.ok(editorOf({})?.covers('/w/a'));
  t.ok(editorOf({})?.covers('/o/a'));
  t.notOk(editorOf({})?.covers('/elsewhere'));
  t.equal(editorOf({ client: { readTextFile: false } }), undefined);
  t.equal(editorOf({ client: { writeTextFile: false } }), undefined);
  t.equal(editorOf({ settings: { clientFiles: 'off' } }), undefined);
});

t.test('instruction files are read unless the setting turns them off', async (t) => {
  t.ok(createSessionInstructions(task({}), thread));
  t.equal(createSessionInstructions(task({ settings: { instructions: 'off' } }), thread), undefined);
});
