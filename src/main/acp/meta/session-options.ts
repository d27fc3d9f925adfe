/**
 * What a client may ask of a session: all of it when the session is made; only what is not kept in the log when it is
 * opened again.
 */
import * as z from 'zod/v4';
import type { SessionSettings } from '../../../shared/config.ts';
import { type JsonObject, ServerError } from '../../../shared/errors.ts';
import type { PermissionMode } from '../../../shared/events.ts';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import type { SessionOptions } from '../../../shared/session-options.ts';
import type { SessionWorkspace } from '../../threads/session-task.ts';
import { parsePolicy } from '../../config/policy/parse-policy.ts';
import { askUserToolName, subagentToolNames, toolNames } from '../../../shared/tool-names.ts';
import { budgetSchema, present, refuseUnknownCost } from './budget.ts';
import { environmentSchema } from './environment.ts';
import { extensionName, readExtension, refusal, type WithMeta } from './extension.ts';
import { checkOutputSchema } from './output-schema.ts';

const longestPersona = 64 * 1024;
const longestSchema = 64 * 1024;
/** Of everything that goes into the log's header. */
const longestStored = 384 * 1024;
const mostTools = 256;
const deepest = 64;

const modeSchema = z.lazy(() => z.enum(['ask', 'accept-edits', 'read-only', 'full-access', 'plan'] satisfies PermissionMode[]).optional());

const samplingSchema = z.lazy(() =>
  z.strictObject({
    temperature: z.number().min(0).max(2).exactOptional(),
    topP: z.number().min(0).max(1).exactOptional(),
    seed: z.int().min(0).exactOptional(),
  }),
);

const newSessionSchema = z.lazy(() =>
  z.strictObject({
    budget: budgetSchema.optional(),
    policy: z.unknown().optional(),
    persona: z
      .string()
      .refine((text) => text.trim() !== '' && Buffer.byteLength(text) <= longestPersona, `expected text of at most ${longestPersona} bytes`)
      .optional(),
    tools: z
      .array(z.string().min(1).max(100))
      .max(mostTools)
      .refine((names) => new Set(names).size === names.length, 'expected every tool once')
      .optional(),
    outputSchema: z
      .record(z.string(), z.unknown())
      .refine((schema) => Buffer.byteLength(JSON.stringify(schema)) <= longestSchema, `expected a schema of at most ${longestSchema} bytes`)
      .optional(),
    depth: z.int().min(0).max(deepest).optional(),
    maxDepth: z.int().min(0).max(deepest).optional(),
    sampling: samplingSchema.optional(),
    mode: modeSchema,
    env: environmentSchema.optional(),
  }),
);

/** Kept in the log of the session: a change would make two truths of it. */
const fixed = ['budget', 'policy', 'persona', 'tools', 'outputSchema', 'depth', 'maxDepth', 'sampling'];

const openSessionSchema = z.lazy(() =>
  z.strictObject({ mode: modeSchema, env: environmentSchema.optional(), readOnly: z.boolean().optional() }),
);

interface SessionFacts extends Pick<SessionSettings, 'prices' | 'subagents'>, Pick<SessionWorkspace, 'mcpServers'> {
  /** Whether there is the tool that asks the person. */
  readonly asksPerson?: boolean;
}

/** For `session/new`. @throws ServerError INVALID_PARAMS naming the member */
export async function newSessionOptions(
  params: WithMeta,
  { prices, subagents, mcpServers = [], asksPerson = false }: SessionFacts,
): Promise<SessionOptions> {
  const { policy, outputSchema, ...given } = readExtension(params, newSessionSchema);
  refuseUnknownCost(given.budget, prices);
  const known = [...toolNames, ...(subagents.length > 0 ? subagentToolNames : []), ...(asksPerson ? [askUserToolName] : [])];
  refuseUnknownTools(given.tools, known, mcpServers.length > 0);
  if (outputSchema !== undefined) await checkOutputSchema(outputSchema as JsonObject);
  const options: SessionOptions = present({
    ...given,
    policy: policy === undefined ? undefined : readPolicy(policy),
    outputSchema: outputSchema as JsonObject | undefined,
  });
  const { env: _, ...stored } = options;
  if (Buffer.byteLength(JSON.stringify(stored)) > longestStored) throw refusal('', `expected at most ${longestStored} bytes beside env.`);
  return options;
}

/** Which tools its servers have is not known yet. */
function isMcpToolName(name: string): boolean {
  return /^mcp__[A-Za-z0-9_-]{1,59}$/.test(name);
}

/** A tool that there is not would leave the session with less than was meant, in silence. */
function refuseUnknownTools(names: readonly string[] = [], known: readonly string[], hasMcp: boolean): void {
  const unknown = names.findIndex((name) => !known.includes(name) && !(hasMcp && isMcpToolName(name)));
  if (unknown >= 0) throw refusal(`tools.${unknown}`, `there is no such tool here; the tools are ${known.join(', ')}.`);
}

export interface OpenOptions {
  readonly mode?: PermissionMode;
  readonly env?: Readonly<Record<string, string>>;
  /** Only to be looked at. */
  readonly readOnly?: boolean;
}

/** For `session/load` and `session/resume`. @throws ServerError INVALID_PARAMS naming the member */
export function openSessionOptions(params: WithMeta): OpenOptions {
  const given = params._meta?.[extensionName];
  const kept = fixed.find((name) => typeof given === 'object' && given !== null && Object.hasOwn(given, name));
  if (kept !== undefined) throw refusal(kept, 'is kept in the log of the session since session/new and cannot be given again.');
  return present(readExtension(params, openSessionSchema));
}

function readPolicy(policy: unknown): PolicyRules {
  try {
    return parsePolicy(policy, `_meta["${extensionName}"].policy`);
  } catch (error) {
    // A file with the same fault would be a wrong setting; here it is a wrong request.
    if (!(error instanceof ServerError)) throw error;
    throw new ServerError('INVALID_PARAMS', error.message, { data: { ...error.data, field: `_meta["${extensionName}"].policy` } });
  }
}
