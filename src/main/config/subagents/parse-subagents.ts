/**
 * The `[[subagents]]` tables of a file as checked providers. Whatever is unknown, misplaced or of the wrong type is refused
 * with its place: an agent that is set up by half would only be found out in the middle of a task.
 */
import type { JsonObject, JsonValue } from '../../../shared/errors.ts';
import { selfProvider, type SubagentPermission, type SubagentProvider } from '../../../shared/subagent-protocol.ts';
import { acceptValue } from '../check-value.ts';
import { configError, nearest } from '../config-error.ts';
import { looksSecret } from './looks-secret.ts';
import { describeField, type FieldName, type FieldType, fieldNames, fieldOf } from './provider-fields.ts';

/** The key of the array of tables in the file. */
export const subagentsKey = 'subagents';
const mostProviders = 50;
const mostEntries = 500;
const longestVariable = 32 * 1024;
const longestSchema = 64 * 1024;

type Values = Partial<Record<FieldName, JsonValue>>;

/**
 * Checks the value of the file's key `subagents`. The result has the file's order.
 *
 * @throws ServerError CONFIG_INVALID for the first thing that is wrong; values of `env` are never repeated
 */
export function parseSubagents(value: unknown, file: string, home: string): SubagentProvider[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > mostProviders) {
    throw configError({ key: subagentsKey, expected: `at most ${mostProviders} tables [[subagents]]`, where: file });
  }
  const providers: SubagentProvider[] = [];
  for (const [index, table] of value.entries()) {
    const provider = parseProvider(table, `[[subagents]] ${index + 1} of ${file}`, home);
    if (providers.some(({ name }) => name === provider.name)) {
      throw configError({ key: 'name', expected: 'a name that no other agent has', came: provider.name, where: whereOf(index, file) });
    }
    providers.push(provider);
  }
  return providers;
}

/** The variable of a provider that looks like a secret, as `name: VARIABLE`; `undefined` when there is none. */
export function secretVariable(providers: readonly SubagentProvider[]): string | undefined {
  for (const { name, env } of providers) {
    const found = Object.entries(env).find(([variable, value]) => looksSecret(variable, value));
    if (found !== undefined) return `${name}: ${found[0]}`;
  }
  return undefined;
}

function whereOf(index: number, file: string): string {
  return `[[subagents]] ${index + 1} of ${file}`;
}

function parseProvider(table: unknown, where: string, home: string): SubagentProvider {
  if (!isTable(table)) throw configError({ key: subagentsKey, expected: 'a table', came: table, where });
  const values: Values = {};
  for (const [key, value] of Object.entries(table)) {
    const name = fieldNames.find((one) => one === key);
    if (name === undefined) {
      const suggestion = nearest(key, fieldNames);
      throw configError({ key, expected: `one of ${fieldNames.join(', ')}`, where, suggestion });
    }
    values[name] = checkField(name, value, where, home);
  }
  refuseContradictions(values, where);
  return toProvider(values, home);
}

function checkField(name: FieldName, value: unknown, where: string, home: string): JsonValue {
  const { type } = fieldOf(name);
  const accepted = acceptField(type, value, home);
  if (accepted !== undefined) return accepted;
  const suggestion = type.kind === 'choice' && typeof value === 'string' ? nearest(value, type.values) : undefined;
  const hidden = type.kind === 'variables' || type.kind === 'list';
  throw configError({ key: name, expected: describeField(type), ...(hidden ? {} : { came: value }), where, suggestion });
}

function acceptField(type: FieldType, value: unknown, home: string): JsonValue | undefined {
  switch (type.kind) {
    case 'list':
      return acceptList(value, type.entry);
    case 'variables':
      return acceptVariables(value);
    case 'schema':
      return acceptSchema(value);
    case 'integer':
    case 'decimal':
    case 'choice':
    case 'text':
    case 'url':
    case 'path':
    case 'word':
    case 'names':
    default:
      return acceptValue(type, { value, asText: false, where: '', baseDir: undefined }, home);
  }
}

function acceptList(value: unknown, entry: RegExp): string[] | undefined {
  if (!Array.isArray(value) || value.length > mostEntries) return undefined;
  const texts = value.filter((one): one is string => typeof one === 'string' && entry.test(one));
  return texts.length === value.length ? texts : undefined;
}

function acceptVariables(value: unknown): JsonObject | undefined {
  if (!isTable(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.length > mostEntries) return undefined;
  const right = entries.every(
    ([name, text]) =>
      /^[A-Za-z_][A-Za-z0-9_]{0,199}$/.test(name) && typeof text === 'string' && text.length <= longestVariable && !text.includes('\0'),
  );
  return right ? (Object.fromEntries(entries) as JsonObject) : undefined;
}

/** A TOML table may hold what JSON has not: dates, not-a-number, whole numbers beyond 53 bits. */
function acceptSchema(value: unknown): JsonObject | undefined {
  if (!isTable(value) || !isJson(value, 32)) return undefined;
  const text = JSON.stringify(value);
  return text.length > longestSchema ? undefined : (JSON.parse(text) as JsonObject);
}

function isJson(value: unknown, depth: number): boolean {
  if (depth === 0) return false;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every((one) => isJson(one, depth - 1));
  return isTable(value) && Object.values(value).every((one) => isJson(one, depth - 1));
}

function refuseContradictions(values: Values, where: string): void {
  const { name, command, env_mode: envMode, env_allow: envAllow } = values;
  if (name === undefined) throw configError({ key: 'name', expected: 'a name for the agent', where });
  if (name === selfProvider) {
    const misplaced = fieldNames.find((key) => values[key] !== undefined && fieldOf(key).ofProcess === true);
    if (misplaced === undefined) return;
    throw configError({ key: misplaced, expected: `no ${misplaced}: ${selfProvider} is this server and starts no process`, where });
  }
  if (command === undefined) throw configError({ key: 'command', expected: 'the program of the agent', where });
  if (envAllow !== undefined && envMode !== 'allow') {
    throw configError({ key: 'env_allow', expected: 'env_mode = "allow" beside it', where });
  }
}

function toProvider(values: Values, home: string): SubagentProvider {
  const isSelf = values.name === selfProvider;
  // Each value was checked against its own row.
  const text = (key: FieldName) => (values[key] ?? fieldOf(key).default) as string | undefined;
  const number = (key: FieldName) => (values[key] ?? fieldOf(key).default) as number;
  const list = (key: FieldName) => values[key] as string[] | undefined;
  const command = text('command');
  return {
    name: text('name') ?? '',
    description: text('description'),
    command: command?.startsWith('~/') === true ? `${home}${command.slice(1)}` : command,
    args: list('args') ?? [],
    cwd: text('cwd'),
    permission: (values.permission ?? (isSelf ? 'ask' : 'reject')) as SubagentPermission,
    env: (values.env ?? {}) as Record<string, string>,
    envMode: text('env_mode') as 'scrub' | 'allow',
    envAllow: list('env_allow') ?? [],
    disposeEofGraceMs: number('dispose_eof_grace_ms'),
    disposeGraceMs: number('dispose_grace_ms'),
    startTimeoutMs: number('start_timeout_ms'),
    idleTimeoutMs: number('idle_timeout_ms'),
    maxRunning: number('max_running'),
    maxDepth: number('max_depth'),
    poolSize: number('pool_size'),
    poolIdleMs: number('pool_idle_ms'),
    persona: text('persona'),
    tools: list('tools'),
    outputSchema: values.output_schema as JsonObject | undefined,
  };
}

/** The built-in agent, where the file does not change it. */
export function defaultSelf(): SubagentProvider {
  return toProvider({ name: selfProvider }, '');
}

/** The agents that sessions may delegate to, the built-in one first unless `delegate` is `off`. */
export function availableSubagents(fromFile: readonly SubagentProvider[], delegate: 'on' | 'off'): SubagentProvider[] {
  const processes = fromFile.filter(({ name }) => name !== selfProvider);
  if (delegate === 'off') return processes;
  return [fromFile.find(({ name }) => name === selfProvider) ?? defaultSelf(), ...processes];
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
