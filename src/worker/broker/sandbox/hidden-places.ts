/**
 * What no contained command can see: places of secrets in the home directory, this program's own, and sockets by which
 * other programs take orders. Only what exists is given, links followed.
 */
import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { isInsideAny } from '../../../shared/path-inside.ts';
import { words } from '../../../shared/permission/comparable-names.ts';
import { presentPaths } from './present-paths.ts';
import { quickLook } from './quick-look.ts';
import { boundSockets } from './unix-sockets.ts';

const inHome = words(`
  .ssh .gnupg .aws .azure .kube .docker .config/gh .config/gcloud .config/git/credentials .config/op .config/hub .netrc _netrc .npmrc .yarnrc.yml
  .pypirc .pgpass .my.cnf .git-credentials .cargo/credentials .cargo/credentials.toml .gem/credentials .terraform.d .vault-token
  .local/share/keyrings .password-store .mozilla .config/google-chrome .config/chromium .config/BraveSoftware .codex/auth.json .claude/.credentials.json
  .Xauthority .ICEauthority .bash_history .zsh_history .python_history .node_repl_history`);
/** Memory that programs of the system share: their sockets above all. */
const ofSystem = ['/run', '/var/run', '/var/tmp', '/tmp'];
/** Variables that name a place with sockets, or one. */
const socketVariables = ['XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK', 'XAUTHORITY'];
/** What of `/run` programs cannot do without: the programs of some systems, and one file that says where names are resolved. */
const neededOfRun = ['/run/current-system', '/run/opengl-driver', '/run/wrappers', '/etc/resolv.conf'];
/** Of sockets in unusual places; each costs a mount. */
const mostSocketMasks = 64;

export interface Place {
  /** Canonical. */
  readonly path: string;
  readonly isDirectory: boolean;
}

export interface HiddenPlaces {
  readonly hidden: readonly Place[];
  /** To be shown again, read-only. */
  readonly shown: readonly string[];
  /** Sockets outside of all that is hidden. Canonical. */
  readonly sockets: readonly string[];
}

export interface OfServer {
  readonly ambient: Readonly<Record<string, string | undefined>>;
  /** Absolute directories of this program's state and settings. */
  readonly own: readonly string[];
}

/** @param open what is in these directories is not looked at as a socket: whoever may write there may have put it there */
export async function hiddenPlaces({ ambient, own }: OfServer, open: readonly string[]): Promise<HiddenPlaces> {
  const home = ambient['HOME'];
  const named = socketVariables.flatMap((name) => ambient[name] ?? []);
  const [secrets, sockets] = await Promise.all([home === undefined || !isAbsolute(home) ? [] : presentPaths(home, inHome), boundSockets()]);
  const paths = [...secrets.map((name) => join(home ?? '/', name)), ...own, ...named, ...ofSystem].filter(
    (path) => isAbsolute(path) && path !== '/',
  );
  const [found, needed] = await Promise.all([Promise.all(paths.map(placeAt)), Promise.all(neededOfRun.map(placeAt))]);
  const places = new Map(found.flatMap((place) => (place === undefined ? [] : [[place.path, place] as const])));
  const directories = [...places.values()].filter(({ isDirectory }) => isDirectory).map(({ path }) => path);
  const isBelowOther = (path: string): boolean => directories.some((other) => path.startsWith(`${other}/`));
  const hidden = [...places.values()].filter(({ path }) => !isBelowOther(path));
  const shown = needed.flatMap((place) => (place !== undefined && isBelowOther(place.path) ? [place.path] : []));
  return {
    hidden,
    shown: [...new Set(shown)],
    sockets: await unhiddenSockets(sockets, (path) => isBelowOther(path) || isInsideAny(open, path)),
  };
}

/** Bound under a path that leads elsewhere by now, or to something else, they are no danger: what is there counts. */
async function unhiddenSockets(bound: readonly string[], isCovered: (path: string) => boolean): Promise<string[]> {
  const possible = bound.filter((path) => !isCovered(path) && !path.startsWith('/dev/')).slice(0, mostSocketMasks);
  const found = await Promise.all(possible.map(socketAt));
  return [...new Set(found)].filter((path) => path !== undefined).filter((path) => !isCovered(path));
}

async function socketAt(path: string): Promise<string | undefined> {
  try {
    const real = await realpath(path);
    return (await stat(real)).isSocket() ? real : undefined;
  } catch {
    return undefined; // Gone, or out of this user's reach.
  }
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
  const entry = await quickLook(path);
  return entry === undefined || entry.isSymbolicLink() ? undefined : { path, isDirectory: entry.isDirectory() };
}
