/**
 * The environment that child processes get: the server's own, without what looks like a credential; or, for a subagent
 * that is configured so, only what its provider names.
 *
 * Works on names and on values, since neither alone is enough. A heuristic, not a wall: a secret under a plain name and
 * of plain shape passes. What a caller lays over the result is the caller's choice and is not looked at.
 */
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Needed by nearly everything, and never secret; kept whatever they hold. `SSH_AUTH_SOCK` is a socket's path. */
const alwaysKept = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'PWD', 'OLDPWD', 'TMPDIR', 'LANG', 'SSH_AUTH_SOCK']);

/** Parts of a name, between underscores and the like. */
const secretWords = new Set(
  'KEY KEYS PASSWORD PASSWORDS PASSWD PASSPHRASE PASS PWD PW SECRET SECRETS TOKEN CREDENTIAL CREDENTIALS CREDS AUTH AUTHORIZATION COOKIE COOKIES JWT BEARER PAT MNEMONIC'.split(
    ' ',
  ),
);
/** Words written together, as in `PGPASSWORD` or `_authToken`. `TOKENIZERS` and `KEYBOARD` only begin like one. */
const secretEnding =
  /(?:(?:API|APP|ACCESS|PRIVATE|SECRET|MASTER|CLIENT|LICENSE|SSH|GPG|AUTH|SIGNING|ENCRYPTION|DEPLOY)KEYS?|(?:SSH|DB|PG|SQL|USER|ROOT|ADMIN|MAIL|SMTP|FTP|REDIS|PROXY)(?:PASS|PWD|PW)|PASSWORDS?|PASSWD|PASSPHRASE|SECRETS?|TOKEN|CREDENTIALS?|OAUTH)$/;

const secretValues: readonly RegExp[] = [
  // A password in a URL, a token in the place of the user, or one in the query.
  /[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:[^\s/@]+@/i,
  /[a-z][a-z0-9+.-]*:\/\/[\w-]{20,}@/i,
  /[?&](?:access_?token|api_?key|key|token|sig|signature|secret|password)=[^&\s]{8,}/i,
  /(?<![\w-])sk-(?=[\w-]*\d)[\w-]{16,}/,
  /(?<![\w-])[rsp]k_(?:live|test)_\w{10,}/,
  /(?<![\w-])gh[opsur]_\w{20,}/,
  /(?<![\w-])github_pat_\w{20,}/,
  /(?<![\w-])glpat-[\w-]{16,}/,
  /(?<![\w-])xox[abeprs]-[\w-]{10,}/,
  /(?<![\w-])(?:AKIA|ASIA)[0-9A-Z]{16}(?!\w)/,
  /(?<![\w-])AIza[\w-]{30,}/,
  /(?<![\w-])(?:npm|hf)_[A-Za-z0-9]{20,}/,
  /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\./,
  /(?<![\w-])ya29\.[\w-]{20,}/,
  /(?<![\w-])SG\.[\w-]{16,}\.[\w-]{16,}/,
  /(?<![\w-])(?:dop_v1|shpat|dckr_pat|lin_api|sntrys|rubygems|gsk|r8|hvs|pplx|nvapi|pypi|xai)[_.-][\w-]{20,}/,
  /(?<!\w)\d{8,10}:AA[\w-]{33}(?!\w)/,
  /AGE-SECRET-KEY-1\w+/,
  /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/,
  /\b(?:AccountKey|SharedAccessKey|Password|Pwd)=[^;\s]+/i,
  /"(?:auth|password|token|secret|private_?key|api_?key)"\s*:\s*"[^"]{6,}"/i,
  /hooks\.slack\.com\/services\/\w+|discord(?:app)?\.com\/api\/webhooks\/\w+/,
  /^(?:bearer|basic) \S{8,}$/i,
];

/** True when a child must not get this variable. */
export function isSecretVariable(name: string, value: string): boolean {
  const upper = name.toUpperCase();
  if (upper.startsWith('DSH_')) return true;
  if (alwaysKept.has(upper)) return false;
  const words = upper.split(/[^A-Z0-9]+/);
  if (words.some((word) => secretWords.has(word) || secretEnding.test(word))) return true;
  // A plural TOKENS is a limit far more often than a secret: `MAX_OUTPUT_TOKENS=8192`.
  if (words.some((word) => word.endsWith('TOKENS')) && !/^\d{1,9}$/.test(value)) return true;
  return secretValues.some((pattern) => pattern.test(value));
}

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
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(ambient)) {
    if (value === undefined || withheld.includes(name) || isSecretVariable(name, value)) continue;
    result[name] = value;
  }
  return Object.assign(result, unattended);
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
  const result: Record<string, string> = {};
  const prefixes = allow.filter((entry) => entry.endsWith('*')).map((entry) => entry.slice(0, -1));
  for (const [name, value] of Object.entries(ambient)) {
    if (value === undefined) continue;
    const matches = alwaysAllowed.has(name.toUpperCase()) || prefixes.some((prefix) => name.startsWith(prefix));
    const passes = allow.includes(name) || (matches && !withheld.includes(name) && !isSecretVariable(name, value));
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
