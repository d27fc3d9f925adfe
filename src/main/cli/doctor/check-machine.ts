/** What the server needs of this machine: Node, a shell, git and ripgrep. */
import { execFile } from 'node:child_process';
import { type Finding, fail, ok, warn } from './finding.ts';

const timeoutMs = 3_000;

/** First line of what the program prints about its version; `undefined` when it does not run. */
async function versionOf(program: string, args: readonly string[] = ['--version']): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const options = { timeout: timeoutMs, encoding: 'utf8', maxBuffer: 64 * 1024, windowsHide: true } as const;
    const child = execFile(program, args, options, (error, stdout) => {
      resolve(error === null ? (stdout.split('\n')[0]?.trim() ?? '') : undefined);
    });
    child.stdin?.end();
  });
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const enough = major > 20 || (major === 20 && minor >= 19);
  return enough ? ok('node', process.version) : fail('node', `${process.version} is too old`, 'Install Node 20.19 or newer.');
}

async function checkRipgrep(path: string | undefined): Promise<Finding> {
  const advice = 'Install again with optional packages (npm install --include=optional); grep and glob need it.';
  if (path === undefined) return fail('ripgrep', 'its package for this platform is not installed', advice);
  const version = await versionOf(path);
  return version === undefined ? fail('ripgrep', `${path} does not run`, advice) : ok('ripgrep', version);
}

async function checkBash(): Promise<Finding> {
  const version = await versionOf('bash');
  return version === undefined ? fail('bash', 'not found', 'Install bash: commands run in it.') : ok('bash', version);
}

async function checkGit(): Promise<Finding> {
  const version = await versionOf('git');
  return version === undefined ? warn('git', 'not found', 'Install git if the projects use it.') : ok('git', version);
}

export async function checkMachine(ripgrepPath: string | undefined): Promise<Finding[]> {
  return [checkNode(), ...(await Promise.all([checkRipgrep(ripgrepPath), checkBash(), checkGit()]))];
}
