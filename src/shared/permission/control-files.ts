/**
 * Files that are more than files: those that make other programs run something or trust someone. Known by name, since
 * they matter most while they do not exist yet.
 */
import { relative } from 'node:path';
import { isInside } from '../path-inside.ts';
import { comparableNames, hasSequence, sequences, startsWith, words } from './comparable-names.ts';

/** One or more names in a row, at any depth: the thing itself and all that is in it. Wherever the workspace lies. */
const guardedEverywhere = sequences('.git .ssh .gnupg .aws .azure .kube .config/gh .config/gcloud .config/dsh-acp .local/state/dsh-acp');
/** The same, but names above the workspace do not count: it may well lie in a tool's own directory of work trees. */
const guardedInWorkspace = sequences(
  '.vscode .idea .zed .fleet .devcontainer .claude .cursor .windsurf .gemini .codex .opencode .qwen .kiro .roo .continue .amp .junie .husky .dsh-acp .github/workflows .config/fish .config/git .config/systemd .config/autostart library/launchagents',
);
const controlFiles = new Set(
  words(`
  .envrc .mcp.json opencode.json opencode.jsonc crush.json .crush.json .aider.conf.yml dsh-acp.toml .gitconfig .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf .netrc _netrc
  .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
  .kshrc .cshrc .tcshrc .login .inputrc config.fish`),
);
/** From the root: whatever lies in them is configuration, or not a file at all. */
const systemDirectories = sequences('etc private/etc proc sys dev');
/** Memory that looks like a directory; people put scratch workspaces there. */
const sharedMemory = ['dev', 'shm'];

/**
 * Whether writing this absolute path may change what other programs run or trust.
 *
 * @param roots the directories of the workspace; of two that hold the path the inner one is meant
 */
export function isControlFile(path: string, roots: readonly string[]): boolean {
  const names = comparableNames(path);
  const root = roots.filter((one) => isInside(one, path)).sort((a, b) => b.length - a.length)[0];
  const namesInWorkspace = root === undefined ? names : comparableNames(relative(root, path));
  return (
    controlFiles.has(names.at(-1) ?? '') ||
    guardedEverywhere.some((sequence) => hasSequence(names, sequence)) ||
    guardedInWorkspace.some((sequence) => hasSequence(namesInWorkspace, sequence)) ||
    (systemDirectories.some((sequence) => startsWith(names, sequence)) && !startsWith(names, sharedMemory))
  );
}

/** The same lists for a sandbox, which must name what it holds: paths below a root of the workspace. `.git` is a matter of its own. */
export const controlPlaces: readonly string[] = [
  ...controlFiles,
  ...[...guardedEverywhere, ...guardedInWorkspace].map((names) => names.join('/')).filter((path) => path !== '.git'),
];
