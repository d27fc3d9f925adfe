/**
 * Runs git for the runner. Never in the environment of whoever started the runner, where `GIT_DIR` may name another repository, and never with
 * hooks: they are the repository's, and would run with the runner's rights.
 */
import { spawn } from 'node:child_process';

const keptErrorBytes = 4_096;
const keptOutputBytes = 1024 * 1024;
/** A checkout of a very large repository on a slow disk takes minutes. */
const timeoutMs = 900_000;

export interface GitOptions {
  readonly cwd?: string;
  /** More variables, such as `GIT_INDEX_FILE`. */
  readonly env?: Readonly<Record<string, string>>;
  /** An open file that takes the output. */
  readonly outputTo?: number;
  readonly signal?: AbortSignal;
}

export class GitFailed extends Error {}

/**
 * Fulfils with stdout (at most 1 MB of it).
 *
 * @throws GitFailed with git's own words when it ends with anything but 0, or cannot be started
 */
export async function git(args: readonly string[], options: GitOptions = {}): Promise<string> {
  const all = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '-c', 'gc.auto=0', ...args];
  // A group of its own: Ctrl-C in the terminal must not end git in the middle of its work.
  const child = spawn('git', all, {
    cwd: options.cwd,
    env: { ...gitEnvironment, ...options.env },
    detached: true,
    stdio: ['ignore', options.outputTo ?? 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < keptOutputBytes) output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-keptErrorBytes);
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  const stop = () => child.kill('SIGTERM');
  options.signal?.addEventListener('abort', stop, { once: true });
  const problem = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(`git could not be started (${error.code ?? error.message})`));
    child.once('close', (code, signal) =>
      resolve(code === 0 ? undefined : `git ${args.find((arg) => !arg.startsWith('-')) ?? ''} ended with ${code ?? signal}`),
    );
  });
  clearTimeout(timer);
  options.signal?.removeEventListener('abort', stop);
  if (problem === undefined) return output;
  const words = errors.trim().split('\n').slice(-6).join(' ').trim();
  throw new GitFailed(words === '' ? problem : `${problem}: ${words}`);
}

/** Names that git may keep: how to reach other machines, and which settings of the user hold. */
const keptGitNames = /^GIT_(?:SSH|SSL|ASKPASS|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)$)/;

const gitEnvironment: Record<string, string> = { GIT_TERMINAL_PROMPT: '0' };
for (const [name, value] of Object.entries({ ...process.env, LC_ALL: 'C' })) {
  const own = name === 'DEEPSEEK_API_KEY' || name.startsWith('DSH_');
  if (value !== undefined && !own && (!name.startsWith('GIT_') || keptGitNames.test(name))) gitEnvironment[name] = value;
}
