import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import t from 'tap';
import type { Test } from 'tap';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { displayPath } from '../../../../src/worker/display/display-path.ts';
import { editTool } from '../../../../src/worker/tools/edit.ts';
import { fencedText } from '../../../../src/worker/display/fenced-text.ts';
import { globTool } from '../../../../src/worker/tools/glob.ts';
import { grepTool } from '../../../../src/worker/tools/grep.ts';
import { readTool } from '../../../../src/worker/tools/read.ts';
import { ToolRegistry } from '../../../../src/worker/tools/registry.ts';
import { titleLine } from '../../../../src/worker/display/title-line.ts';
import { todoWriteTool } from '../../../../src/worker/tools/todo-write.ts';
import { writeTool } from '../../../../src/worker/tools/write.ts';
import { testContext } from './tool-context.ts';

const registry = createToolRegistry();
const names = ['bash', 'bash_kill', 'bash_output', 'edit', 'glob', 'grep', 'read', 'todo_write', 'write'];

const refused = (t: Pick<Test, 'match'>, name: string, raw: string, pattern: RegExp) => {
  const parsed = registry.parseArguments(name, raw);
  t.match(parsed, { ok: false, code: 'INVALID_ARGS', text: pattern });
  t.match(parsed, { text: /Nothing was executed/ });
};

t.test('registry', async (t) => {
  t.test('lists the nine tools by name, whatever order they came in, with one hash', async (t) => {
    t.strictSame(
      registry.schemas().map((schema) => schema.name),
      names,
    );
    const one = new ToolRegistry([readTool, writeTool]);
    const other = new ToolRegistry([writeTool, readTool]);
    t.equal(one.hash(), other.hash());
    t.match(one.hash(), /^[0-9a-f]{16}$/);
    t.not(one.hash(), registry.hash());
    t.equal(registry.get('read'), readTool);
    for (const name of ['nope', '__proto__', 'constructor', 'toString']) t.equal(registry.get(name), undefined);
    t.throws(() => new ToolRegistry([readTool, readTool]), /two tools are named read/);
  });

  t.test('every schema is a closed object and valid draft 2020-12', async (t) => {
    const ajv = new Ajv.default({ strict: true, strictRequired: false });
    for (const schema of registry.schemas()) {
      t.match(schema.parameters, { type: 'object', additionalProperties: false }, schema.name);
      t.type(ajv.compile(schema.parameters), 'function', schema.name);
    }
  });

  t.test('only what never changes anything is safe beside others', async (t) => {
    const safe = ['read', 'glob', 'grep'];
    for (const tool of [readTool, writeTool, editTool, globTool, grepTool, todoWriteTool]) {
      t.equal(tool.isParallelSafe({} as never), safe.includes(tool.name), tool.name);
    }
  });
});

t.test('arguments', async (t) => {
  t.test('an unknown tool is named with those there are', async (t) => {
    t.match(registry.parseArguments('rm\u001b[2J', '{}'), {
      ok: false,
      code: 'UNKNOWN_TOOL',
      text: /no tool "rm\\u001b\[2J".*bash, bash_kill/,
    });
    t.match(registry.parseArguments('__proto__', '{}'), { ok: false, code: 'UNKNOWN_TOOL' });
  });

  t.test('blank text is an empty object', async (t) => {
    const empty = new ToolRegistry([{ ...readTool, parameters: { type: 'object', properties: {}, additionalProperties: false } }]);
    for (const raw of ['', '  \n', '{}']) t.strictSame(empty.parseArguments('read', raw), { ok: true, args: {} });
    refused(t, 'read', '', /required but missing: file_path/);
  });

  t.test('broken and cut off JSON says so', async (t) => {
    for (const raw of ['{"file_path": "a', '{"file_path"', '{', '{"file_path": "a"', '[1,']) refused(t, 'read', raw, /cut off/);
    for (const raw of ['{file_path: 1}', '{"a":1}}', 'undefined', '{"file_path":"a"} {"file_path":"b"}'])
      refused(t, 'read', raw, /cannot be parsed/);
  });

  t.test('names the place, what was expected and the kind that came, never the value', async (t) => {
    const secret = 's3cr3t'.repeat(1000);
    refused(t, 'read', '[]', /the arguments: expected object, got array/);
    refused(t, 'read', 'null', /expected object, got null/);
    refused(t, 'read', '{"file_path":7,"offset":"5"}', /file_path: expected string, got number; offset: expected integer, got string\./);
    refused(t, 'read', '{"file_path":"a","offset":0}', /offset: expected minimum 1, got 0\./);
    refused(t, 'read', '{"file_path":"a","path":"b"}', /schema: path: there is no such argument\./);
    refused(t, 'todo_write', '{"todos":[{"content":"x","status":"done"}]}', /todos\[0\]\.status: expected one of \["pending"/);
    refused(t, 'todo_write', '{"todos":[{"status":"pending"}]}', /todos\[0\]: required but missing: content\./);
    refused(
      t,
      'todo_write',
      JSON.stringify({ todos: Array.from({ length: 101 }, () => ({ content: 'x', status: 'pending' })) }),
      /maxItems 100, got an array of 101/,
    );
    const long = registry.parseArguments('read', JSON.stringify({ file_path: secret, [secret]: 1, limit: secret }));
    t.ok(!long.ok && long.text.length < 1000 && !long.text.includes(secret.slice(0, 200)));
    refused(t, 'todo_write', JSON.stringify({ todos: Array.from({ length: 200_000 }, () => 1) }), /todos/);
    refused(t, 'read', `{"file_path":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, /expected string, got array/);
  });

  t.test('prototype keys are refused and pollute nothing', async (t) => {
    for (const key of ['__proto__', 'constructor', 'prototype', 'toString']) {
      refused(t, 'read', `{"file_path":"a","${key}":{"polluted":1}}`, /there is no such argument/);
      refused(t, 'read', `{"${key}":{"file_path":"a"}}`, /missing: file_path/);
    }
    t.equal(({} as { polluted?: number }).polluted, undefined);
  });

  t.test('a name that is half a character is refused like any other that there is not', async (t) => {
    const parsed = registry.parseArguments('glob', '{"pattern":"*","\\ud800":1}');
    t.match(parsed, { ok: false, code: 'INVALID_ARGS', text: /not well-formed Unicode/ });
  });

  t.test('whatever comes in, nothing throws, and what passes matches the schema (property)', (t) => {
    const ajv = new Ajv.default({ strict: false });
    const checks = new Map(registry.schemas().map((schema) => [schema.name, ajv.compile(schema.parameters)]));
    const keys = fc.constantFrom(
      'file_path',
      'offset',
      'limit',
      'content',
      'pattern',
      'path',
      'todos',
      'command',
      'task_id',
      '__proto__',
      'x/y~z',
    );
    const value = fc.oneof(fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null), fc.jsonValue());
    const json = fc.oneof(
      fc.dictionary(keys, value).map((object) => JSON.stringify(object)),
      fc.json(),
      fc.string(),
      fc.tuple(fc.dictionary(keys, value), fc.nat(60)).map(([object, cut]) => JSON.stringify(object).slice(0, cut)),
    );
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...names), fc.string()), json, (name, raw) => {
        const parsed = registry.parseArguments(name, raw);
        return parsed.ok ? checks.get(name)?.(parsed.args) === true : parsed.text.length > 0 && parsed.text.length < 4000;
      }),
      { numRuns: 3000 },
    );
    t.end();
  });

  t.test('file tools never throw and never leave their directory, whatever the strings are (property)', async (t) => {
    const cwd = join(t.testdir({ work: {} }), 'work');
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('\0', '\uD800', '*', '**', '[', '{', '!', '.', './'),
    );
    await fc.assert(
      fc.asyncProperty(text, text, text, async (a, b, c) => {
        // Names only: whole paths are the policy's to judge.
        const name = `n${a.replaceAll('/', '_').replaceAll('..', '_')}`;
        const context = testContext(cwd);
        const path = { file_path: name };
        await writeTool.execute({ ...path, content: b }, context);
        await readTool.execute(path, context);
        await editTool.execute({ ...path, old_string: b, new_string: c }, context);
        await globTool.execute({ pattern: a || 'x' }, context);
        for (const view of [
          readTool.presentCall(path, { cwd }),
          editTool.presentCall({ ...path, old_string: b, new_string: c }, { cwd }),
          writeTool.presentCall({ ...path, content: b }, { cwd }),
          grepTool.presentCall({ pattern: a, include: b }, { cwd }),
        ]) {
          // oxlint-disable-next-line no-control-regex -- that is the point
          if (/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(view.title)) return false;
        }
        return true;
      }),
      { numRuns: 80 },
    );
    t.strictSame(readdirSync(join(cwd, '..')), ['work']);
    t.notOk(readdirSync(cwd).some((name) => name.endsWith('.tmp')));
  });
});

t.test('todo_write', async (t) => {
  t.test('hands the whole list over and tells how far it is', async (t) => {
    const context = testContext(t.testdir({}));
    const todos = [
      { content: 'a', status: 'completed' as const },
      { content: 'b', status: 'pending' as const },
    ];
    t.match(await todoWriteTool.execute({ todos }, context), { isError: false, text: 'Plan updated (1 of 2 done).' });
    t.strictSame(context.plans, [todos]);
    t.strictSame(todoWriteTool.presentCall({ todos }, { cwd: '/w' }), {
      card: 'generic',
      title: 'Update plan (1 of 2 done)',
      kind: 'think',
    });
    t.strictSame(todoWriteTool.access({ todos }, { cwd: '/w' }), { kind: 'none' });
  });
});

t.test('presentation', async (t) => {
  t.test('titles are short, relative inside the workspace and one clean line', async (t) => {
    const cwd = '/home/space';
    t.equal(readTool.presentCall({ file_path: 'src/foo.ts', offset: 5, limit: 4 }, { cwd }).title, 'Read src/foo.ts (5 - 8)');
    t.equal(readTool.presentCall({ file_path: '/home/space/src/foo.ts' }, { cwd }).title, 'Read src/foo.ts');
    t.equal(readTool.presentCall({ file_path: '/home/space_evil/foo.ts' }, { cwd }).title, 'Read /home/space_evil/foo.ts');
    t.match(readTool.presentCall({ file_path: 'a.ts', offset: 5 }, { cwd }), {
      kind: 'read',
      title: 'Read a.ts (from line 5)',
      locations: [{ path: '/home/space/a.ts', line: 5 }],
    });
    t.strictSame(editTool.presentCall({ file_path: 'a.ts', old_string: 'x', new_string: 'y' }, { cwd }), {
      card: 'diff',
      title: 'Edit a.ts',
      diffs: [{ path: '/home/space/a.ts', oldText: 'x', newText: 'y' }],
      locations: [{ path: '/home/space/a.ts' }],
    });
    t.match(writeTool.presentCall({ file_path: 'a.ts', content: 'y' }, { cwd }), {
      card: 'diff',
      diffs: [{ oldText: null, newText: 'y' }],
    });
    t.match(grepTool.presentCall({ pattern: 'a.*b', path: 'src', include: '*.ts' }, { cwd }), {
      kind: 'search',
      title: 'Search a.*b in src (*.ts)',
    });
    t.match(globTool.presentCall({ pattern: '**/*.ts' }, { cwd }), { kind: 'search', title: 'Find **/*.ts' });
  });

  t.test('controls, escape sequences, bidi marks and length cannot pass', async (t) => {
    t.equal(titleLine('a\u001b[31mred\u001b[0m\nb\u202Egnp.exe\u0007\u2066x\u2069\u200B'), 'ared bgnp.exex');
    t.equal(titleLine('link \u001b]8;;http://evil\u0007text\u001b]8;;\u0007 end'), 'link text end');
    t.ok(titleLine('😀'.repeat(500)).length <= 200);
    t.equal(titleLine('\u0000\u009b\u2028 '), '');
    t.equal(displayPath('.', '/a'), '.');
    t.equal(fencedText('x ``` y ```` z'), '`````\nx ``` y ```` z\n`````');
  });
});
