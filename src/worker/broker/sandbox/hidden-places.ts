/**
 * What no contained command can see: places of secrets in the home directory, this program's own, and sockets by which
 * other programs take orders. Only what exists is given, links followed.
 */
import { lstat, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { words } from '../../../shared/permission/comparable-names.ts';

const inHome = words(`
  .ssh .gnupg .aws .azure .kube .docker .config/gh .config/gcloud .config/git/credentials .config/op .config/hub .netrc _netrc .npmrc .yarnrc.yml
  .pypirc .pgpass .my.cnf .git-credentials .cargo/credentials .cargo/credentials.toml .gem/credentials .terraform.d .vault-token
  .local/share/keyrings .password-store .mozilla .config/google-chrome .config/chromium .config/BraveSoftware .codex/auth.json .claude/.credentials.json
  .bash_history .zsh_history .python_history .node_repl_history`);
/** Memory that programs of the system share: their sockets above all. */
const ofSystem = ['/run', '/var/run', '/var/tmp', '/tmp'];
/** Variables that name a place with sockets, or one. */
const socketVariables = ['XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK'];
/** What of `/run` programs cannot do without: where names are resolved, and the programs of some systems. */
const neededOfRun = ['/run/current-system', '/run/opengl-driver', '/run/wrappers', '/run/systemd/resolve'];

export interface Place {
  /** Canonical. */
  readonly path: string;
  readonly isDirectory: boolean;
}

export interface HiddenPlaces {
  readonly hidden: readonly Place[];
  /** To be shown again, read-only. */
  readonly shown: readonly string[];
}

/** @param own absolute directories of this program's state and settings */
export async function hiddenPlaces(ambient: Readonly<Record<string, string | undefined>>, own: readonly string[]): Promise<HiddenPlaces> {
  const home = ambient['HOME'];
  const named = socketVariables.flatMap((name) => ambient[name] ?? []);
  const paths = [...(home === undefined ? [] : inHome.map((name) => join(home, name))), ...own, ...named, ...ofSystem].filter(
    (path) => isAbsolute(path) && path !== '/',
  );
  const found = await Promise.all(paths.map(placeAt));
  const places = new Map(found.flatMap((place) => (place === undefined ? [] : [[place.path, place] as const])));
  const isBelowOther = ({ path }: Place): boolean =>
    [...places.values()].some((other) => other.isDirectory && other.path !== path && path.startsWith(`${other.path}/`));
  const hidden = [...places.values()].filter((place) => !isBelowOther(place));
  const needed = await Promise.all([...neededOfRun, '/etc/resolv.conf'].map(placeAt));
  const shown = needed.flatMap((place) => (place !== undefined && isBelowOther(place) ? [place.path] : []));
  return { hidden, shown: [...new Set(shown)] };
}

/** Canonical; `undefined` where nothing is, or where nobody may look: then no command of this user can either. */
export async function placeAt(path: string): Promise<Place | undefined> {
  try {
    const real = await realpath(path);
    return { path: real, isDirectory: (await stat(real)).isDirectory() };
  } catch {
    return undefined;
  }
}

/** The same for what is no link itself. */
export async function plainPlaceAt(path: string): Promise<Place | undefined> {
  try {
    const entry = await lstat(path);
    return entry.isSymbolicLink() ? undefined : { path, isDirectory: entry.isDirectory() };
  } catch {
    return undefined;
  }
}
