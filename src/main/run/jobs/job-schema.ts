/**
 * One line of a jobs file: what it may say, and the job it becomes. `docs/runner.md` has the same members in a table.
 */
import { createHash } from 'node:crypto';
import { isAbsolute, normalize, resolve } from 'node:path';
import * as z from 'zod/v4';
import type { JsonObject } from '../../../shared/errors.ts';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import { quoted } from '../../../shared/quoted.ts';
import { budgetSchema } from '../../acp/meta/budget.ts';
import { environmentSchema } from '../../acp/meta/environment.ts';
import { traceparentSchema } from '../../acp/meta/prompt-options.ts';
import { nearest } from '../../config/config-error.ts';
import { isNestedDeeperThan } from '../../../shared/framing/nesting-limit.ts';
import type { Job, JobPlace } from '../job.ts';
import { markVariable } from '../job-environment.ts';

const defaultCommandTimeoutMs = 600_000;
const week = 7 * 24 * 3_600_000;
const maxPromptChars = 8 * 1024 * 1024;
const maxWords = 1_000;

const text = (what: string, max: number) =>
  z
    .string({ error: `expected ${what}` })
    .max(max, `expected ${what} of at most ${max} characters`)
    .refine((value) => value.trim() !== '', `expected ${what} that is not blank`);
const count = (max: number) => {
  const error = `expected a whole number from 1 to ${max}`;
  return z.int({ error }).min(1, error).max(max, error);
};
const prompt = text('text', maxPromptChars);
const path = text('a path', 4_096).refine((value) => !value.includes('\0'), 'expected a path');
const commandText = 'expected a command: text for sh -c, or a list of words that begins with a program';
const command = z
  .union([text('a command', 100_000), z.array(z.string())], { error: commandText })
  .refine((value) => typeof value === 'string' || (value.length <= maxWords && (value[0] ?? '') !== ''), commandText);
const variable = z.string().regex(/^(?!DSH_)[A-Za-z_][A-Za-z0-9_]*$/, 'expected names of variables that do not begin with DSH_');
/** What the runner adds to a job's variables for the session, as long as it may be: the session's limits hold for all of them. */
const added = { DSH_SEED: '9'.repeat(10), [markVariable]: 'x'.repeat(64) };
const environment = z.record(variable, z.string({ error: 'expected text' })).superRefine((env, context) => {
  const issue = environmentSchema.safeParse({ ...env, ...added }).error?.issues[0];
  if (issue !== undefined) context.addIssue({ code: 'custom', message: `${issue.message}, those of the runner included` });
});

const lineSchema = z.strictObject({
  id: z
    .string({ error: 'expected text' })
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]{1,150}$/u, 'expected 1 to 150 characters without control characters')
    .refine((id) => id.trim() === id && id !== '', 'expected an id without blanks around it')
    .refine((id) => !/#\d+$/.test(id), 'expected an id that does not end like the key of a repeat (#2)'),
  prompt: z.union([prompt, z.array(prompt).min(1).max(1_000)], { error: 'expected text that is not blank, or a list of such' }),
  cwd: path.optional(),
  repo: path.optional(),
  base: text('a revision', 500)
    .refine((value) => !value.startsWith('-'), 'expected a revision')
    .optional(),
  subdirectory: path
    .refine((value) => !isAbsolute(value) && !normalize(value).startsWith('..'), 'expected a relative path inside the repository')
    .optional(),
  setup: command.optional(),
  check: command.optional(),
  setupTimeoutMs: count(week).optional(),
  checkTimeoutMs: count(week).optional(),
  budget: budgetSchema.optional(),
  policy: z.union([path, z.record(z.string(), z.json())], { error: 'expected a policy, or the path of a policy file' }).optional(),
  mode: z
    .enum(['ask', 'accept-edits', 'read-only', 'full-access', 'plan'], {
      error: 'expected one of ask, accept-edits, read-only, full-access, plan',
    })
    .optional(),
  env: environment.optional(),
  labels: z.record(z.string().min(1).max(200), z.string({ error: 'expected text' }).max(1_000)).optional(),
  idempotent: z.boolean({ error: 'expected true or false' }).optional(),
  seed: z.int({ error: 'expected a whole number' }).min(0).max(2_147_483_647).optional(),
  priority: z.int({ error: 'expected a whole number from -100 to 100' }).min(-100).max(100).optional(),
  traceparent: traceparentSchema.optional(),
  meta: z.record(z.string(), z.json(), { error: 'expected an object' }).optional(),
});

type Line = z.infer<typeof lineSchema>;

export interface LinePlace {
  /** From 1. */
  readonly number: number;
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
}

export interface PolicyReader {
  /** @throws for a policy that is wrong; the message says where */
  inline(policy: JsonObject): PolicyRules;
  file(path: string): Promise<PolicyRules>;
}

/** A readable sentence about the first thing that is wrong with the line, without the line's number. */
export class WrongLine extends Error {}

const deepestLine = 100;

/**
 * @throws WrongLine
 */
export async function parseJobLine(source: string, place: LinePlace, policies: PolicyReader): Promise<Job> {
  const value = parseObject(source);
  const checked = lineSchema.safeParse(value);
  if (!checked.success) throw new WrongLine(firstFault(checked.error, value));
  return await toJob(checked.data, place, policies, hashOf(value));
}

function parseObject(source: string): object {
  // Checks walk the value by recursion.
  if (isNestedDeeperThan(source, deepestLine)) throw new WrongLine(`expected values nested at most ${deepestLine} levels deep`);
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    throw new WrongLine('this is no JSON: expected one object on one line');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new WrongLine('expected one JSON object');
  return value;
}

/** Blanks between members do not count. */
function hashOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22);
}

/** A name of the file may hold line ends and what a terminal obeys. */
function shownName(name: string): string {
  const cut = name.slice(0, 100);
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(cut) ? quoted(cut) : cut;
}

function firstFault(error: z.ZodError, line: object): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'it does not have the form of a job';
  const place = issue.path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
  const at = shownName(place);
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0] ?? '';
    const hint = at === '' ? nearest(key, Object.keys(lineSchema.shape)) : undefined;
    const name = at === '' ? key : `${at}.${key}`;
    return `${shownName(name)}: there is no such member${hint === undefined ? '' : `; did you mean ${hint}?`}`;
  }
  const there = issue.path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part], line);
  const missing = there === undefined ? ' (it is missing)' : '';
  const words = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return `${at === '' ? 'the line' : at}: ${words}${missing}`;
}

async function toJob(said: Line, { number, baseDir }: LinePlace, policies: PolicyReader, hash: string): Promise<Job> {
  return {
    id: said.id,
    line: number,
    prompts: typeof said.prompt === 'string' ? [said.prompt] : said.prompt,
    place: placeOf(said, baseDir),
    setup: argvOf(said.setup),
    check: argvOf(said.check),
    setupTimeoutMs: said.setupTimeoutMs ?? defaultCommandTimeoutMs,
    checkTimeoutMs: said.checkTimeoutMs ?? defaultCommandTimeoutMs,
    budget: said.budget,
    policy: said.policy === undefined ? undefined : await policyOf(said.policy, baseDir, policies),
    mode: said.mode,
    env: said.env ?? {},
    labels: said.labels ?? {},
    idempotent: said.idempotent ?? false,
    seed: said.seed ?? 0,
    hasSeed: said.seed !== undefined,
    priority: said.priority ?? 0,
    traceparent: said.traceparent,
    hash,
    meta: said.meta,
  };
}

function placeOf({ cwd, repo, base, subdirectory }: Line, baseDir: string): JobPlace {
  if (repo !== undefined) {
    if (cwd !== undefined) throw new WrongLine('cwd: expected either cwd or repo, both are there');
    return { kind: 'worktree', repo: resolve(baseDir, repo), base: base ?? 'HEAD', subdirectory: subdirectory ?? '.' };
  }
  if (base !== undefined) throw new WrongLine('base: expected it only with repo');
  if (subdirectory !== undefined) throw new WrongLine('subdirectory: expected it only with repo');
  if (cwd === undefined) throw new WrongLine('cwd: expected either cwd or repo, neither is there');
  return { kind: 'directory', cwd: resolve(baseDir, cwd) };
}

/** Text is for a shell, as people write it; a list is run as it stands. */
export function argvOf(said: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof said === 'string' ? ['sh', '-c', said] : said;
}

async function policyOf(said: string | JsonObject, baseDir: string, policies: PolicyReader): Promise<PolicyRules> {
  try {
    return typeof said === 'string' ? await policies.file(resolve(baseDir, said)) : policies.inline(said);
  } catch (error) {
    throw new WrongLine(`policy: ${error instanceof Error ? error.message : String(error)}`);
  }
}
