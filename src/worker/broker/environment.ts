/**
 * The environment that child processes get: the server's own, without what looks like a credential.
 *
 * Works on names and on values, since neither alone is enough. A heuristic, not a wall: a secret under a plain name and
 * of plain shape passes. What a caller lays over the result is the caller's choice and is not looked at.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** Needed by nearly everything, and never secret; kept whatever they hold. `SSH_AUTH_SOCK` is a socket's path. */
const alwaysKept = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'PWD', 'OLDPWD', 'TMPDIR', 'LANG', 'SSH_AUTH_SOCK']);

/** Parts of a name, between underscores and the like. */
const secretWords = new Set(
  'KEY KEYS PASSWORD PASSWORDS PASSWD PASSPHRASE PASS PWD SECRET SECRETS TOKEN CREDENTIAL CREDENTIALS CREDS AUTH AUTHORIZATION COOKIE COOKIES JWT BEARER'.split(
    ' ',
  ),
);
/** Words written together, as in `PGPASSWORD` or `_authToken`. `TOKENIZERS` and `KEYBOARD` only begin like one. */
const secretEnding =
  /(?:(?:API|ACCESS|PRIVATE|AUTH|SIGNING|ENCRYPTION|DEPLOY)KEYS?|PASSWORDS?|PASSWD|PASSPHRASE|SECRETS?|TOKEN|CREDENTIALS?|OAUTH)$/;

const secretValues: readonly RegExp[] = [
  /[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:[^\s/@]+@/i,
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
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /\b(?:AccountKey|SharedAccessKey|Password|Pwd)=[^;\s]+/i,
  /hooks\.slack\.com\/services\/\w+/,
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
