/**
 * Arguments as a model writes them, for every tool: parsing, what the call would touch, and how it is shown at every stage.
 *
 * An input is the tool's name, a line feed, and the arguments' text.
 */
import { isAbsolute } from 'node:path';
import type { JsonObject } from '../../../src/shared/errors.ts';
import type { ArgumentsDraft } from '../../../src/shared/render-intents.ts';
import { Projector } from '../../../src/worker/projection/projector.ts';
import { DraftedCalls } from '../../../src/worker/session/drafted-calls.ts';
import { createToolRegistry, everyExtra } from '../../../src/worker/tools/all-tools.ts';
import type { AnyTool, ToolOutcome } from '../../../src/worker/tools/tool.ts';
import { validateAgentFrame } from '../../support/acp-schema.ts';
import { expect, type FuzzTarget } from '../fuzz-target.ts';
import { deepJson, hostileJson, memberNames, numbers, objectText, spoilJson, texts } from '../hostile-values.ts';
import type { Random } from '../random.ts';

const cwd = '/ws/project';
const registry = createToolRegistry([{ name: 'helper', kind: 'self' } as never], everyExtra);
const tools = registry.schemas().map(({ name }) => registry.get(name) as AnyTool);
const controls = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

export const toolCallsTarget: FuzzTarget = {
  name: 'tool-calls',
  maxInputBytes: 256 * 1024,
  seeds: tools.map(({ name }) => Buffer.from(`${name}\n{}`)),
  generate(random) {
    const tool = random.pick(tools);
    const legal = legalValue(random, tool.parameters);
    const text = random.chance(40)
      ? `{"file_path":${deepJson(random)}}`
      : random.chance(3)
        ? spoilJson(random, legal)
        : random.chance(8)
          ? hostileJson(random, 3)
          : JSON.stringify(legal);
    return Buffer.from(`${random.chance(50) ? random.pick(texts) : tool.name}\n${text}`);
  },
  check(input, random) {
    const text = input.toString('utf8');
    const feed = text.indexOf('\n');
    const [name, raw] = [text.slice(0, Math.max(0, feed)), text.slice(feed + 1)];
    const parsed = registry.parseArguments(name, raw);
    const tool = registry.get(name);
    const drafts = draftsOf(random, name, raw);
    if (!parsed.ok) {
      expect(parsed.text !== '' && parsed.text.length < 20_000, () => `a refusal of ${parsed.text.length} characters`);
      showCall(random, { name, raw, tool, drafts, outcome: { text: parsed.text, isError: true, code: parsed.code } });
      return;
    }
    expect(tool !== undefined, () => 'arguments of no tool were taken');
    checkTouched(tool, parsed.args);
    showCall(random, { name, raw, tool, drafts, outcome: hostileOutcome(random) });
  },
};

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

function legalValue(random: Random, schema: Schema): unknown {
  if (schema.enum !== undefined) return random.pick(schema.enum);
  switch (schema.type ?? 'any') {
    case 'string':
      return random.pick(texts) || 'x';
    case 'integer':
    case 'number':
      return random.chance(3) ? random.pick(numbers) : random.below(20);
    case 'boolean':
      return random.chance(2);
    case 'array':
      return random.list(3, () => legalValue(random, schema.items ?? {}));
    case 'object': {
      const names = Object.keys(schema.properties ?? {}).filter((name) => schema.required?.includes(name) === true || random.chance(2));
      return Object.fromEntries(names.map((name) => [name, legalValue(random, schema.properties![name]!)]));
    }
    default:
      return random.pick(texts);
  }
}

function checkTouched(tool: AnyTool, args: unknown): void {
  const before = JSON.stringify(args);
  const access = tool.access(args, { cwd });
  tool.isParallelSafe(args);
  if (access.kind === 'read' || access.kind === 'write')
    expect(
      access.paths.length > 0 && access.paths.every((path) => isAbsolute(path)),
      () => `${tool.name} touches ${JSON.stringify(access)}`,
    );
  if (access.kind === 'execute')
    expect(typeof access.command === 'string' && isAbsolute(access.cwd), () => `${tool.name} runs ${JSON.stringify(access)}`);
  expect(JSON.stringify(args) === before, () => `${tool.name} changed its arguments`);
}

function hostileOutcome(random: Random): ToolOutcome {
  const text = random.pick(texts);
  const meta = random.pick<() => JsonObject | undefined>([
    () => undefined,
    () =>
      JSON.parse(
        objectText(random.list(4, () => [random.pick(memberNames), hostileJson(random)])).replaceAll(/-?1e400/g, '1'),
      ) as JsonObject,
    () => ({ output: random.pick(texts), exitCode: random.pick(numbers), notes: [random.pick(texts)] }),
    () => ({ diffs: [{ path: random.pick(texts), oldText: random.chance(2) ? null : random.pick(texts), newText: random.pick(texts) }] }),
    () =>
      JSON.parse(
        spoilJson(random, {
          diffs: [{ path: '/a', oldText: 'x', newText: 'y' }],
          output: 'o',
          exitCode: 1,
          taskId: 't',
          todos: [],
        }).replaceAll(/-?1e400/g, '1'),
      ) as JsonObject,
  ])();
  return { text, isError: random.chance(2), ...(meta === undefined ? {} : { meta }) };
}

/** What a person is shown of the arguments while they come. */
function draftsOf(random: Random, name: string, raw: string): ArgumentsDraft[] {
  const drafts: ArgumentsDraft[] = [];
  let look: () => void = () => undefined;
  const calls = new DraftedCalls({
    show: (_callId, _name, args) => drafts.push(args),
    hasRoom: () => true,
    schedule: (task) => {
      look = task;
      return () => undefined;
    },
  });
  calls.take({ kind: 'named', callId: 'c', name });
  look();
  const size = Math.max(1, Math.ceil(raw.length / (1 + random.below(6))));
  for (let at = 0; at < raw.length; at += size) {
    calls.take({ kind: 'arguments', callId: 'c', text: raw.slice(at, at + size) } as never);
    look();
  }
  calls.clear();
  return drafts;
}

interface ShownCall {
  readonly name: string;
  readonly raw: string;
  readonly tool: AnyTool | undefined;
  readonly drafts: readonly ArgumentsDraft[];
  readonly outcome: ToolOutcome;
}

function showCall(random: Random, { name, raw, tool, drafts, outcome }: ShownCall): void {
  const projector = new Projector({
    sessionId: 's',
    cwd,
    profile: 'editor',
    client: { terminalOutput: random.chance(2) },
    tools: () => tool,
  });
  const ids = { turn: 1, step: 1, callId: 'c' };
  const updates = [
    ...drafts.flatMap((draft) => projector.draft('c', name, draft)),
    ...projector.project({ type: 'tool/call', data: { ...ids, name, arguments: raw } }),
    ...projector.project({ type: 'tool/start', data: ids }),
    ...projector.output('c', random.pick(texts)),
    ...projector.project({ type: 'tool/result', data: { ...ids, ...outcome } }),
  ];
  for (const update of updates) {
    const frame = JSON.parse(projector.frame(update)) as object;
    const problems = validateAgentFrame(frame);
    expect(problems.length === 0, () => problems.join('; '));
    const { title } = update as { title?: unknown };
    if (typeof title === 'string')
      expect(
        title !== '' && title.length <= 200 && !controls.test(title),
        () => `a title that is not one clean line: ${JSON.stringify(title)}`,
      );
  }
  expect(
    updates.some((update) => 'status' in update && (update.status === 'completed' || update.status === 'failed')),
    () => 'the card never ended',
  );
}
