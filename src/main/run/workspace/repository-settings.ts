/**
 * Takes from a repository's own settings whatever names a program that git would run for the runner: filters of checkouts and
 * commits, and helpers of a lazy fetch. They may be an attacker's, or have been changed by an attempt. Those of the user and
 * of the machine hold, as for any other repository.
 */
import { git } from './git.ts';

/** Hooks, the file system monitor, external diffs and text conversions are turned off where git is called. */
const programs =
  /^(?:filter\..*\.(?:clean|smudge|process|required)|remote\..*\.(?:uploadpack|vcs)|core\.(?:sshcommand|gitproxy|askpass)|credential(?:\..*)?\.helper|protocol\..*\.allow)$/i;
/** What to say instead; an empty value turns the others off. */
const harmless: readonly (readonly [name: RegExp, value: string])[] = [
  [/\.required$/i, 'false'],
  [/\.uploadpack$/i, 'git-upload-pack'],
  [/^protocol\./i, 'never'],
];
const mostSettings = 1_000;

/**
 * Environment variables for further calls in the repository.
 *
 * @throws GitFailed when its settings cannot be read, or name more programs than any honest ones do
 */
export async function harmlessSettings(gitDir: string): Promise<Record<string, string>> {
  const listed = await git([`--git-dir=${gitDir}`, 'config', '--list', '--show-scope', '--includes', '-z']);
  const own = new Set<string>();
  const users = new Map<string, string>();
  const parts = listed.split('\0');
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const scope = parts[at];
    const entry = parts[at + 1] ?? '';
    // A setting without a value has no line end behind its name.
    const nameEnd = entry.includes('\n') ? entry.indexOf('\n') : entry.length;
    const name = entry.slice(0, nameEnd);
    if (!programs.test(name)) continue;
    if (scope === 'local' || scope === 'worktree') own.add(name);
    else if (scope === 'global' || scope === 'system') users.set(name, entry.slice(nameEnd + 1));
  }
  if (own.size > mostSettings) throw new Error(`the repository's settings name ${own.size} programs`);
  const environment: Record<string, string> = { GIT_CONFIG_COUNT: String(own.size) };
  for (const [index, name] of [...own].entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = name;
    environment[`GIT_CONFIG_VALUE_${index}`] = users.get(name) ?? harmless.find(([pattern]) => pattern.test(name))?.[1] ?? '';
  }
  return environment;
}
