/**
 * Files that hold secrets, known by name: the one list of them, for the gate that asks before they are read and for the
 * searches that leave them out.
 */
import { comparablePath, words } from './comparable-names.ts';

/** One or more names in a row, at any depth: the thing itself and all that is in it. */
const secretPlaces = words('.ssh .gnupg .aws .azure .kube .config/gh .config/gcloud .docker/config.json');
/** Last names; `*` stands for any characters. */
const secretNames = words(`
  .env .env.* .envrc .netrc _netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd credentials.json
  *.pem *.key *.p12 *.pfx *.jks *.keystore
  id_rsa id_dsa id_ecdsa id_ed25519 id_rsa_sk id_dsa_sk id_ecdsa_sk id_ed25519_sk`);

const secretPath = new RegExp(`/(?:(?:${alternatives(secretNames)})$|(?:${alternatives(secretPlaces)})(?:/|$))`);

/** Whether reading this absolute path may show a secret. */
export function isSecretFile(path: string): boolean {
  return secretPath.test(comparablePath(path));
}

/**
 * The same list for a search: last names of files, with `*` for any characters, and places as globs in the manner of
 * ignore files. Both are to be compared without regard to case. What they let through is still {@link isSecretFile}'s to say.
 */
export const secretFileNames: readonly string[] = secretNames;
export const secretPlaceGlobs: readonly string[] = secretPlaces.map((place) => `**/${place}`);

function alternatives(globs: readonly string[]): string {
  return globs.map((glob) => glob.replaceAll('.', '\\.').replaceAll('*', '[^/]*')).join('|');
}
