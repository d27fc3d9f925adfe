/**
 * A policy from untrusted data: a parsed file, or what a client sent with a session. Everything is checked, and whatever
 * is not understood is refused: a rule that is silently dropped would be a hole.
 */
import { type PolicyRule, type PolicyRules, policyActions } from '../../../shared/policy-rules.ts';
import { nearest } from '../config-error.ts';
import { isTable, oneOf, shownKey } from './check-member.ts';
import { parseRule } from './parse-rule.ts';
import { policyFault } from './policy-fault.ts';

export const mostRules = 1_000;
/** Globs, words and names of the whole policy. */
const mostPatterns = 20_000;
const longestAskMs = 7 * 24 * 3_600_000;

/** The two spellings of a key: as in a TOML file, and as in JSON. */
const spellings = {
  rules: ['rule', 'rules'],
  fallback: ['fallback'],
  askTimeoutMs: ['ask_timeout_ms', 'askTimeoutMs'],
} as const;

type Key = keyof typeof spellings;

/**
 * Checks a policy. `where` names the file or the member of the request, for the message. The result of an earlier call is
 * taken as well, so that a policy may be stored as it is.
 *
 * @throws ServerError CONFIG_INVALID with the exact place (`rules[2].commands[0]`) in message and `data.key`; neither
 * holds a value of the policy, so both may be answered to a client under another code
 */
export function parsePolicy(value: unknown, where: string): PolicyRules {
  if (!isTable(value)) throw policyFault({ place: 'policy', expected: 'a table of rules', came: value, where });
  const found = readKeys(value, where);
  const rules = parseRules(found.get('rules'), where);
  const fallback = found.get('fallback');
  const askTimeout = found.get('askTimeoutMs');
  return {
    rules,
    fallback: fallback === undefined ? 'deny' : oneOf(fallback.value, policyActions, { place: fallback.written, where }),
    ...(askTimeout === undefined ? {} : { askTimeoutMs: parseTimeout(askTimeout.value, askTimeout.written, where) }),
  };
}

interface Found {
  /** The key as it was spelled. */
  readonly written: string;
  readonly value: unknown;
}

function readKeys(table: Record<string, unknown>, where: string): Map<Key, Found> {
  const found = new Map<Key, Found>();
  const known = Object.entries(spellings) as [Key, readonly string[]][];
  for (const [written, value] of Object.entries(table)) {
    // What a stored policy leaves out may be there as `undefined`.
    if (value === undefined) continue;
    const key = known.find(([, words]) => words.includes(written))?.[0];
    if (key === undefined) {
      const suggestion = nearest(written, Object.values(spellings).flat());
      throw policyFault({ place: shownKey(written), expected: 'rule, fallback or ask_timeout_ms', came: value, where, suggestion });
    }
    if (found.has(key)) throw policyFault({ place: written, expected: 'one spelling of this key', came: value, where });
    found.set(key, { written, value });
  }
  return found;
}

function parseRules(found: Found | undefined, where: string): PolicyRule[] {
  if (found === undefined) return [];
  const { written, value } = found;
  if (!Array.isArray(value) || value.length > mostRules) {
    throw policyFault({ place: written, expected: `a list of at most ${mostRules} rules`, came: value, where });
  }
  const rules: PolicyRule[] = [];
  const names = new Set<string>();
  let patterns = 0;
  for (const [index, entry] of value.entries()) {
    const place = `${written}[${index}]`;
    if (!isTable(entry)) throw policyFault({ place, expected: 'a rule', came: entry, where });
    const rule = parseRule(entry, index, { place, where });
    if (names.has(rule.name))
      throw policyFault({ place: `${place}.name`, expected: 'a name that no other rule has', came: rule.name, where });
    names.add(rule.name);
    patterns += countPatterns(rule);
    if (patterns > mostPatterns)
      throw policyFault({ place, expected: `at most ${mostPatterns} patterns in the policy`, came: entry, where });
    rules.push(rule);
  }
  return rules;
}

function countPatterns({ tools = [], paths = [], commands = [], providers = [] }: PolicyRule): number {
  return tools.length + paths.length + providers.length + commands.reduce((sum, words) => sum + words.length, 0);
}

function parseTimeout(value: unknown, place: string, where: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= longestAskMs) return value;
  throw policyFault({ place, expected: `a whole number of milliseconds from 1 to ${longestAskMs}`, came: value, where });
}
