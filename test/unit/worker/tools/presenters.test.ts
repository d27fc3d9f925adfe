import { isAbsolute } from 'node:path';
import * as fc from 'fast-check';
import t from 'tap';
import type { JsonValue } from '../../../../src/shared/errors.ts';
import type { ArgumentsDraft, FileLocation } from '../../../../src/shared/render-intents.ts';
import { Projector } from '../../../../src/worker/projection/projector.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { diffHunks, diffsToMeta } from '../../../../src/worker/tools/diff-hunks.ts';
import type { AnyTool, ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

const cwd = '/ws/project';
const registry = createToolRegistry([{ name: 'helper', command: 'x' } as never], { plan: true });
const tools = registry.schemas().map(({ name }) => registry.get(name)!);

const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.constantFrom('src/a.ts', '/etc/x', '../up', cwd, `${cwd}2/a`));

/** Arguments that the tool's schema takes. */
function argumentsFor(tool: AnyTool): fc.Arbitrary<Record<string, JsonValue>> {
  const { properties, required } = tool.parameters as { properties: Record<string, any>; required: string[] };
  const members = Object.entries(properties).map(([name, schema]) => [name, valueFor(schema)] as const);
  const record = fc.record(Object.fromEntries(members), { requiredKeys: required as never[] }) as fc.Arbitrary<Record<string, JsonValue>>;
  return record.filter((args) => registry.parseArguments(tool.name, JSON.stringify(args)).ok);
}

function valueFor(schema: any): fc.Arbitrary<JsonValue> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'string':
      return anyText.map((text) => (text.length < (schema.minLength ?? 0) ? 'x' : text));
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1000, 1000) });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(valueFor(schema.items), { maxLength: 3 });
    case 'object': {
      const members = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, valueFor(one)] as const);
      return fc.record(Object.fromEntries(members) as Record<string, fc.Arbitrary<JsonValue>>) as fc.Arbitrary<JsonValue>;
    }
    default:
      return fc.constant(null);
  }
}

const anyOutcome: fc.Arbitrary<ToolOutcome> = fc.record(
  {
    text: anyText,
    isError: fc.boolean(),
    meta: fc.oneof(
      fc.record({ output: anyText, exitCode: fc.integer({ min: 0, max: 255 }), notes: fc.array(anyText, { maxLength: 2 }) }),
      fc.record({ diffs: fc.array(fc.record({ path: fc.constant('/ws/a'), oldText: anyText, newText: anyText }), { maxLength: 2 }) }),
      fc.dictionary(anyText, fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<JsonValue>, { maxKeys: 3 }),
    ),
  },
  { requiredKeys: ['text', 'isError'] },
);

const anyDraft: fc.Arbitrary<ArgumentsDraft> = fc.record(
  {
    members: fc.dictionary(fc.constantFrom('file_path', 'command', 'content', 'pattern', 'x'), fc.jsonValue({ maxDepth: 1 }), {
      maxKeys: 3,
    }) as fc.Arbitrary<any>,
    growing: fc.record({
      name: fc.constantFrom('file_path', 'command', 'content'),
      value: fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<any>,
    }),
  },
  { requiredKeys: ['members'] },
);

for (const tool of tools) {
  t.test(`${tool.name} shows its calls purely, in legal frames, whatever the arguments are`, async () => {
    fc.assert(
      fc.property(argumentsFor(tool), anyOutcome, anyDraft, (args, outcome, draft) => {
        const before = JSON.stringify([args, outcome, draft]);
        const context = { cwd };
        const views = (): unknown[] => [
          tool.presentDraft?.(draft, context),
          tool.presentCall(args, context),
          tool.presentResult(args, outcome, context),
        ];
        const first = JSON.stringify(views());
        if (first !== JSON.stringify(views())) throw new Error('the same arguments give another view');
        if (before !== JSON.stringify([args, outcome, draft])) throw new Error('a presenter changed what it was given');
        const view = tool.presentCall(args, context);
        const paths: readonly FileLocation[] = 'locations' in view ? (view.locations ?? []) : [];
        if (!paths.every(({ path, line }) => isAbsolute(path) && (line === undefined || line >= 1))) throw new Error('a relative location');
        if (view.card === 'diff' && !view.diffs.every(({ path }) => isAbsolute(path))) throw new Error('a relative diff');
        checkFrames(tool, args, outcome, draft);
      }),
      { numRuns: 20 },
    );
  });
}

function checkFrames(tool: AnyTool, args: JsonValue, outcome: ToolOutcome, draft: ArgumentsDraft): void {
  for (const terminalOutput of [true, false]) {
    const projector = new Projector({ sessionId: 's', cwd, profile: 'editor', client: { terminalOutput }, tools: () => tool });
    const ids = { turn: 1, step: 1, callId: 'c' };
    const updates = [
      ...projector.draft('c', tool.name, draft),
      ...projector.project({ type: 'tool/call', data: { ...ids, name: tool.name, arguments: JSON.stringify(args) } }),
      ...projector.project({ type: 'tool/start', data: ids }),
      ...projector.output('c', 'running'),
      ...projector.project({ type: 'tool/result', data: { ...ids, ...outcome } }),
    ];
    for (const update of updates) {
      const problems = validateAgentFrame(JSON.parse(projector.frame(update)));
      if (problems.length > 0) throw new Error(problems.join('; '));
    }
    if (updates.every((update) => !('status' in update) || update.status === 'pending')) throw new Error('the call never ended');
  }
}

t.test(
  'a change that succeeded always ends as a diff: hunks with context, the whole of a new file, or what the call intended',
  async (t) => {
    const context = { cwd };
    for (const name of ['write', 'edit']) {
      const tool = registry.get(name)!;
      fc.assert(
        fc.property(fc.string({ maxLength: 60 }), fc.string({ maxLength: 60 }), fc.boolean(), (before, after, isNew) => {
          const diffs = isNew ? [{ path: '/ws/a', oldText: null, newText: after }] : diffHunks('/ws/a', before, after);
          const outcome = { text: 'done', isError: false, meta: diffsToMeta(diffs) };
          const view = tool.presentResult({}, outcome, context);
          return view.card === 'diff' && JSON.stringify(view.diffs) === JSON.stringify(diffs);
        }),
        { numRuns: 50 },
      );
      t.match(tool.presentResult({}, { text: 'too much to show', isError: false }, context), { card: 'diff', diffs: [] });
      t.match(tool.presentResult({}, { text: 'no such file', isError: true }, context), { card: 'generic', content: ['no such file'] });
    }
  },
);

t.test('titles are relative to the working directory by whole segments', async (t) => {
  const title = (args: object) => registry.get('read')!.presentCall(args, { cwd }).title;
  t.equal(title({ file_path: 'src/foo.ts', offset: 5, limit: 4 }), 'Read src/foo.ts (5 - 8)');
  t.equal(title({ file_path: `${cwd}/src/foo.ts` }), 'Read src/foo.ts');
  t.equal(title({ file_path: `${cwd}-other/foo.ts` }), `Read ${cwd}-other/foo.ts`, 'a sibling that begins alike is outside');
  t.equal(title({ file_path: '../foo.ts' }), 'Read /ws/foo.ts');
  t.equal(title({ file_path: '..foo.ts' }), 'Read ..foo.ts', 'two dots may begin a name');
});
