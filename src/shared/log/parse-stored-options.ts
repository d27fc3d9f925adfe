/**
 * The `options` of a log's header as checked {@link StoredSessionOptions}. A client's word is checked in full before it is
 * written; here a header that was changed by hand must not pass as a budget or a policy that it is not.
 */
import type { JsonObject } from '../errors.ts';
import type { PolicyRule } from '../policy-rules.ts';
import type { StoredSessionOptions } from '../session-options.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isCount: Check = (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isWhole: Check = (value) => isCount(value) && Number.isInteger(value);
const isAction = oneOf('allow', 'ask', 'deny');

const isBudget = members({
  deadline: isCount,
  maxWallMs: isCount,
  maxSteps: isCount,
  maxToolCalls: isCount,
  maxTokens: isCount,
  maxCostUsd: isCount,
});

const isSampling = members({ temperature: isCount, topP: isCount, seed: (value) => isCount(value) && Number.isSafeInteger(value) });

const isRule = members(
  {
    name: isText,
    action: isAction,
    tools: listOf(isText),
    access: listOf(oneOf('read', 'write', 'execute', 'delegate', 'mcp', 'none')),
    paths: listOf(isText),
    commands: listOf(listOf(isText)),
    providers: listOf(isText),
    network: oneOf('any', 'none'),
    sandbox: oneOf('required'),
  } satisfies Record<keyof PolicyRule, Check>,
  ['name', 'action'],
);

const isStoredOptions = members({
  budget: isBudget,
  policy: members({ rules: listOf(isRule), fallback: isAction, askTimeoutMs: isCount }, ['rules', 'fallback']),
  persona: isText,
  tools: listOf(isText),
  outputSchema: isObject,
  depth: isWhole,
  maxDepth: isWhole,
  sampling: isSampling,
  mode: oneOf('ask', 'accept-edits', 'read-only', 'full-access', 'plan'),
} satisfies Record<keyof StoredSessionOptions, Check>);

/** The options, or `undefined` when they are not what this release writes. */
export function parseStoredOptions(value: unknown): StoredSessionOptions | undefined {
  return isStoredOptions(value) ? (value as StoredSessionOptions) : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function oneOf(...values: readonly string[]): Check {
  return (value) => values.includes(value as string);
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** An object with no other members than these; those in `required` must be there. */
function members(checks: Readonly<Record<string, Check>>, required: readonly string[] = []): Check {
  return (value) =>
    isObject(value) &&
    required.every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, member]) => Object.hasOwn(checks, name) && checks[name]?.(member) === true);
}
