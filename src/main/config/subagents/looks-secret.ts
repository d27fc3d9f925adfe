/**
 * Whether a variable of an agent's table looks like a secret, so that the file around it must be private. Errs on the side
 * of yes: the price of a wrong yes is one chmod.
 */
const secretName = /key|token|secret|pass|pwd|cred|auth|cookie|jwt|bearer/i;
/** A URL with a password, a PEM block, or a long run of letters and digits as keys are. */
const secretValue = /:\/\/[^\s/@:]*:[^\s/@]+@|-----BEGIN|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,}/;

export function looksSecret(name: string, value: string): boolean {
  return value !== '' && (secretName.test(name) || secretValue.test(value));
}
