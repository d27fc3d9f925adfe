/**
 * Files that are more than files: those that make other programs run something or trust someone, and those that hold
 * secrets. Known by name, since they matter most while they do not exist yet.
 *
 * Names are compared as a forgiving file system would: case, trailing dots and ignorable characters do not count.
 */
import { relative } from 'node:path';
import { isInside } from '../display/path-inside.ts';

/** One or more names in a row, at any depth: the thing itself and all that is in it. Wherever the workspace lies. */
const guardedEverywhere = sequences('.git .ssh .gnupg .aws .azure .kube .config/gh .config/gcloud .config/dsh-acp .local/state/dsh-acp');
/** The same, but names above the workspace do not count: it may well lie in a tool's own directory of work trees. */
const guardedInWorkspace = sequences(
  '.vscode .idea .zed .fleet .devcontainer .claude .cursor .husky .dsh-acp .github/workflows .config/fish .config/git .config/systemd .config/autostart library/launchagents',
);
const controlFiles = words(`
  .envrc .mcp.json dsh-acp.toml .gitconfig .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf .netrc _netrc
  .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
  .kshrc .cshrc .tcshrc .login .inputrc config.fish`);
/** From the root: whatever lies in them is configuration, or not a file at all. */
const systemDirectories = sequences('etc private/etc proc sys dev');
/** Memory that looks like a directory; people put scratch workspaces there. */
const sharedMemory = ['dev', 'shm'];

const secretPlaces = sequences('.ssh .gnupg .aws .azure .kube .config/gh .config/gcloud .docker/config.json');
const secretFiles = words('.env .envrc .netrc _netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd');
const secretPatterns = [/^\.env\./, /\.(?:pem|key|p12|pfx|jks|keystore)$/, /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$/];

/** Whether writing this absolute path may change what other programs run or trust. */
export function isControlFile(path: string, workspace: string): boolean {
  const names = comparableNames(path);
  const namesInWorkspace = isInside(workspace, path) ? comparableNames(relative(workspace, path)) : names;
  return (
    controlFiles.has(names.at(-1) ?? '') ||
    guardedEverywhere.some((sequence) => hasSequence(names, sequence)) ||
    guardedInWorkspace.some((sequence) => hasSequence(namesInWorkspace, sequence)) ||
    (systemDirectories.some((sequence) => startsWith(names, sequence)) && !startsWith(names, sharedMemory))
  );
}

/** Whether reading this absolute path may show a secret. */
export function isSecretFile(path: string): boolean {
  const names = comparableNames(path);
  const last = names.at(-1) ?? '';
  return (
    secretFiles.has(last) ||
    secretPatterns.some((pattern) => pattern.test(last)) ||
    secretPlaces.some((sequence) => hasSequence(names, sequence))
  );
}

/** HFS+ ignores these in names: with one of them inside, `.git` is still `.git` there. */
const ignorable = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

function comparableNames(path: string): string[] {
  return path
    .split(/[\\/]/)
    .filter((name) => name !== '' && name !== '.')
    .map((name) =>
      name
        .normalize('NFKC')
        .replace(ignorable, '')
        .replace(/[. ]+$/, '')
        .toLowerCase(),
    );
}

function hasSequence(names: readonly string[], sequence: readonly string[]): boolean {
  return names.some((_, start) => startsWith(names.slice(start, start + sequence.length), sequence));
}

function startsWith(names: readonly string[], sequence: readonly string[]): boolean {
  return sequence.every((name, index) => names[index] === name);
}

function words(text: string): Set<string> {
  return new Set(text.trim().split(/\s+/));
}

function sequences(text: string): string[][] {
  return text.split(' ').map((path) => path.split('/'));
}
