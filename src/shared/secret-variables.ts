/**
 * Which variables of the environment look like a credential, and so do not reach processes in which a model has a hand.
 *
 * Works on names and on values, since neither alone is enough. A heuristic, not a wall: a secret under a plain name and
 * of plain shape passes.
 */

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

/** True when a child process must not get this variable. */
export function isSecretVariable(name: string, value: string): boolean {
  const upper = name.toUpperCase();
  if (upper.startsWith('DSH_')) return true;
  if (alwaysKept.has(upper)) return false;
  const words = upper.split(/[^A-Z0-9]+/);
  if (words.some((word) => secretWords.has(word) || secretEnding.test(word))) return true;
  // A plural TOKENS is a limit far more often than a secret: `MAX_OUTPUT_TOKENS=8192`.
  if (words.some((word) => word.endsWith('TOKENS')) && !/^\d{1,9}$/.test(value)) return true;
  return looksLikeSecret(value);
}

/** True for a value of the shape of a key, whatever it is called. */
export function looksLikeSecret(value: string): boolean {
  return secretValues.some((pattern) => pattern.test(value));
}
