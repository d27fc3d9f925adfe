/**
 * The environment that child processes get: the server's own, without what looks like a credential; or, for a subagent
 * that is configured so, only what its provider names.
 *
 * What a caller lays over the result is the caller's choice and is not looked at.
 */
import { environmentSecrets } from '../../shared/environment-secrets.ts';
import { isSecretVariable } from '../../shared/secret-variables.ts';
import { SecretValues } from '../../shared/secret-values.ts';
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Nobody sits at the terminal: no colours, no pager, no question about a password. */
const unattended = {
  NO_COLOR: '1',
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
} as const;

/** The scrubbed environment. `withheld` names more variables to leave out, such as the one that holds the model's key. */
export function childEnvironment(ambient: Environment, withheld: readonly string[] = []): Record<string, string> {
  const isSecret = secretsIn(ambient, withheld);
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(ambient)) {
    if (value === undefined || isSecret(name, value)) continue;
    result[name] = value;
  }
  return Object.assign(result, unattended);
}

/** A secret may stand a second time, under a plain name or within another value. */
function secretsIn(ambient: Environment, withheld: readonly string[]): (name: string, value: string) => boolean {
  const known = new SecretValues(environmentSecrets(ambient, withheld));
  return (name, value) => withheld.includes(name) || isSecretVariable(name, value) || (known.inText(value) !== value && !isNeeded(name));
}

function isNeeded(name: string): boolean {
  return alwaysAllowed.has(name.toUpperCase());
}

/** Without these hardly any program starts; an allow-list need not name them. */
const alwaysAllowed = new Set('PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TZ TMPDIR TEMP TMP SYSTEMROOT'.split(' '));

/**
 * Only what the list names, and a few variables that nearly every program needs. An entry is a name, or the begin of names
 * with `*` behind it. Whatever looks like a secret, or is withheld, or begins with `DSH_` passes only when an entry is
 * exactly its name.
 */
export function allowedEnvironment(
  ambient: Environment,
  allow: readonly string[],
  withheld: readonly string[] = [],
): Record<string, string> {
  const isSecret = secretsIn(ambient, withheld);
  const result: Record<string, string> = {};
  const prefixes = allow.filter((entry) => entry.endsWith('*')).map((entry) => entry.slice(0, -1));
  for (const [name, value] of Object.entries(ambient)) {
    if (value === undefined) continue;
    const matches = isNeeded(name) || prefixes.some((prefix) => name.startsWith(prefix));
    const passes = allow.includes(name) || (matches && !isSecret(name, value));
    if (passes) result[name] = value;
  }
  return Object.assign(result, unattended);
}

/**
 * The environment of a subagent's process. What the provider's own `env` says is laid over the rest as it is: it was
 * written down for this child, so a secret and a `DSH_` variable in it are meant.
 */
export function subagentEnvironment(
  ambient: Environment,
  provider: Pick<SubagentProvider, 'env' | 'envMode' | 'envAllow'>,
  withheld: readonly string[] = [],
): Record<string, string> {
  const base =
    provider.envMode === 'allow' ? allowedEnvironment(ambient, provider.envAllow, withheld) : childEnvironment(ambient, withheld);
  return Object.assign(base, provider.env);
}
