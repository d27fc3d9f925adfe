/**
 * The keys of one `[[subagents]]` table: type, default and meaning. The table in `docs/subagents.md` is made from it.
 */
import { describeType } from '../check-value.ts';
import type { ValueType } from '../key-spec.ts';

export type FieldType =
  | ValueType
  /** A list of texts. */
  | { readonly kind: 'list'; readonly says: string; readonly entry: RegExp }
  /** A table of texts by variable name. */
  | { readonly kind: 'variables' }
  /** A table that is a JSON Schema. */
  | { readonly kind: 'schema' };

export interface ProviderField {
  readonly type: FieldType;
  readonly default: string | number | undefined;
  readonly defaultText?: string;
  readonly doc: string;
  /** Means something only for an agent that is a process. */
  readonly ofProcess?: true;
}

const day = 24 * 3600 * 1000;
const milliseconds = (min: number) => ({ kind: 'integer', min, max: day }) as const;
const count = (min: number, max: number) => ({ kind: 'integer', min, max }) as const;
/** No control characters but tab and line ends. */
const word = /^[^\0]{0,8192}$/su;

export const providerFields = {
  name: {
    type: { kind: 'word', pattern: /^[a-z][a-z0-9-]{0,39}$/, says: 'a word of a-z, 0-9 and - that begins with a letter' },
    default: undefined,
    defaultText: 'required',
    doc: 'How the model names the agent. `self` is this server: its table changes the built-in one.',
  },
  description: {
    type: { kind: 'text', maxLength: 1_000 },
    default: undefined,
    doc: 'When to choose this agent. The model reads it where there are several.',
  },
  command: {
    type: {
      kind: 'word',
      pattern: /^(?:~?\/[^\0]{1,4095}|[^\0/~][^\0/]{0,254})$/u,
      says: 'an absolute path, a path below ~/, or the name of a program in PATH',
    },
    default: undefined,
    defaultText: 'required, but for `self`, which has none',
    doc: 'The program of the agent, which speaks ACP on its stdin and stdout.',
    ofProcess: true,
  },
  args: {
    type: { kind: 'list', says: 'a list of texts', entry: word },
    default: undefined,
    defaultText: '`[]`',
    doc: 'Its arguments; no shell reads them.',
    ofProcess: true,
  },
  cwd: {
    type: { kind: 'path' },
    default: undefined,
    defaultText: 'the working directory of the delegating session',
    doc: 'Where the agent works; absolute, or below ~/.',
  },
  permission: {
    type: { kind: 'choice', values: ['reject', 'allow', 'ask'] },
    default: 'reject',
    defaultText: '`reject`; `ask` for `self`',
    doc: 'What happens to its permission requests: all are refused, all are allowed once, or each is asked of the client of this server.',
  },
  env: {
    type: { kind: 'variables' },
    default: undefined,
    defaultText: '`{}`',
    doc: 'Variables laid over its environment. A file with a secret in them must have mode 0600.',
    ofProcess: true,
  },
  env_mode: {
    type: { kind: 'choice', values: ['scrub', 'allow'] },
    default: 'scrub',
    doc: 'What it inherits: all that does not look like a secret, or only the names in env_allow.',
    ofProcess: true,
  },
  env_allow: {
    type: {
      kind: 'list',
      says: 'a list of variable names, `*` at the end for any ending',
      entry: /^[A-Za-z_][A-Za-z0-9_]{0,199}\*?$|^\*$/,
    },
    default: undefined,
    defaultText: '`[]`',
    doc: 'The names that pass when env_mode is `allow`, secrets too.',
    ofProcess: true,
  },
  dispose_eof_grace_ms: {
    type: milliseconds(1),
    default: 6_000,
    doc: 'From the closing of its stdin to SIGTERM.',
    ofProcess: true,
  },
  dispose_grace_ms: {
    type: milliseconds(1),
    default: 3_000,
    doc: 'From SIGTERM to SIGKILL.',
    ofProcess: true,
  },
  start_timeout_ms: {
    type: milliseconds(1),
    default: 60_000,
    doc: 'From the request to a ready session, the wait for a place among max_running included.',
  },
  idle_timeout_ms: {
    type: milliseconds(0),
    default: 600_000,
    doc: 'A run whose agent says nothing for this long ends as failed; 0 waits for ever.',
  },
  max_running: {
    type: count(1, 1_000),
    default: 8,
    doc: 'Runs of this agent at once, over all sessions; more wait. For `self` each depth counts for itself.',
  },
  max_depth: {
    type: count(1, 10),
    default: 3,
    doc: 'How many delegations may stand below a session that a client opened.',
  },
  pool_size: {
    type: count(0, 64),
    default: 0,
    doc: 'Processes kept warm after a run for the next one; 0 starts one per run.',
    ofProcess: true,
  },
  pool_idle_ms: {
    type: milliseconds(1),
    default: 60_000,
    doc: 'How long a warm process may wait unused.',
    ofProcess: true,
  },
  persona: {
    type: { kind: 'text', maxLength: 20_000 },
    default: undefined,
    doc: 'Stands behind its own instructions. Refused at the start by an agent that does not take it.',
  },
  tools: {
    type: { kind: 'list', says: 'a list of tool names', entry: /^[\w.:-]{1,128}$/ },
    default: undefined,
    defaultText: 'all that it has',
    doc: 'The only tools it may have. Refused at the start by an agent that does not take it.',
  },
  output_schema: {
    type: { kind: 'schema' },
    default: undefined,
    doc: 'JSON Schema that its final answer must meet. Refused at the start by an agent that does not take it.',
  },
} as const satisfies Record<string, ProviderField>;

export type FieldName = keyof typeof providerFields;
export const fieldNames = Object.keys(providerFields) as FieldName[];

/** The row of a key, without the literal types of the table. */
export function fieldOf(name: FieldName): ProviderField {
  return providerFields[name];
}

/** What the type asks for, in words. */
export function describeField(type: FieldType): string {
  switch (type.kind) {
    case 'list':
      return type.says;
    case 'variables':
      return 'a table of texts by variable name';
    case 'schema':
      return 'a table that is a JSON Schema';
    case 'integer':
    case 'decimal':
    case 'choice':
    case 'text':
    case 'url':
    case 'path':
    case 'word':
    case 'names':
    default:
      return describeType(type);
  }
}

/** The table of the documentation: Markdown, a row a key, with a newline at the end. */
export function providerTable(): string {
  const rows = fieldNames.map((name) => {
    const field = fieldOf(name);
    const fallback = field.defaultText ?? (field.default === undefined ? 'none' : `\`${field.default}\``);
    const process = field.ofProcess === true ? ' Not for `self`.' : '';
    return `| \`${name}\` | ${describeField(field.type)} | ${fallback} | ${field.doc}${process} |`;
  });
  return `| key | value | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}
