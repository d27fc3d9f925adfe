/**
 * Which values in the environment of this server are secrets that it knows: they are taken out of all that it writes.
 *
 * Whether a child gets a variable is another question, and is answered more strictly (`secret-variables.ts`): a variable that is withheld
 * for nothing costs little, but a harmless value that counts as a secret would be torn out of everybody's text.
 */
import { isSecretVariable, looksLikeSecret } from './secret-variables.ts';

/** What such a variable says of a secret is where it is, or what kind it is; not what it is. */
const harmlessEnding =
  /(?:^|[^A-Z])(?:ENV|FILE|FILES|PATH|DIR|DIRECTORY|HOME|NAME|ID|URL|URI|HOST|PORT|SOCK|SOCKET|TYPE|KIND|MODE|METHOD|SCHEME|FORMAT|REGION|ENDPOINT|DOMAIN|ISSUER|REALM|ALG|ALGORITHM|USER|USERNAME|EMAIL|PROVIDER|SERVICE|COMMAND|CMD|HELPER|LAYOUT|SIZE|LENGTH|COUNT|LIMIT|BUDGET|MIN|MAX|DAYS|TTL|TIMEOUT|EXPIRY|EXPIRES|ENABLED|DISABLED|VERSION)$/;

const harmlessValues: readonly RegExp[] = [
  // A path (base64 may begin with a slash, too), a variable's name, a host, an URL without anybody's name in it, an address of mail.
  /^(?:~|\.{1,2}|[A-Za-z]:)?[\\/](?:[^+=\\/]+[\\/])+[^+=\\/]*$|^~?\/[\w-]+(?:\.\w+)+$/,
  /^\$?\{?[A-Z]+(?:_[A-Z0-9]+)+\}?$/,
  /^(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?$/i,
  /^[a-z][a-z0-9+.-]*:\/\/[^@?#]*$/i,
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
];
/** Plain words: a passphrase may be made of them, what else is called a key or a token is not. */
const plainWords = /^[a-z]+(?:[-_ ][a-z]+)*$/;
const passphrase = /PASS|PWD|PW(?:_|$)|SECRET|MNEMONIC|PHRASE/;

const passwordInUrl = /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/i;

/**
 * @param keyVariables names of variables that hold a key, whatever they are called
 * @returns also the password of an URL alone, since programs print it so
 */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>>, keyVariables: readonly string[] = []): string[] {
  const values: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !(keyVariables.includes(name) || isKnownSecret(name, value))) continue;
    const password = passwordInUrl.exec(value)?.[1];
    values.push(value.trim(), ...(password === undefined ? [] : [password]));
  }
  return values;
}

function isKnownSecret(name: string, value: string): boolean {
  // Our own settings are withheld from children as a whole; of them, too, only what is called a secret is one.
  const ownName = name.toUpperCase().replace(/^DSH_(?:ACP_)?/, '');
  if (!isSecretVariable(ownName, value)) return false;
  if (looksLikeSecret(value)) return true;
  if (harmlessEnding.test(ownName) || harmlessValues.some((pattern) => pattern.test(value))) return false;
  return !plainWords.test(value) || passphrase.test(ownName);
}
