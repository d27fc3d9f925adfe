/** Whether the agents to delegate to can be started: is the program there, may it be run. Starts none of them. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { SubagentProvider } from '../../../shared/subagent-protocol.ts';
import { type Finding, fail, ok } from './finding.ts';

const subject = 'subagent';

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

async function mayRun(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return !(await isDirectory(path));
  } catch {
    // Not there, or not for this user: both are a no.
    return false;
  }
}

/** The path of the program; `undefined` when there is none that may be run. */
async function findProgram(command: string, searchPath: string): Promise<string | undefined> {
  if (isAbsolute(command)) return (await mayRun(command)) ? command : undefined;
  for (const directory of searchPath.split(delimiter)) {
    const path = join(directory, command);
    if (isAbsolute(directory) && (await mayRun(path))) return path;
  }
  return undefined;
}

async function checkOne({ name, command, cwd, env }: SubagentProvider): Promise<Finding> {
  if (cwd !== undefined && !(await isDirectory(cwd))) {
    return fail(subject, `${name}: its cwd ${cwd} is not a directory`, 'Correct cwd in its [[subagents]] table.');
  }
  if (command === undefined) return ok(subject, `${name}: sessions of this server`);
  const program = await findProgram(command, env['PATH'] ?? process.env['PATH'] ?? '');
  if (program !== undefined) return ok(subject, `${name}: ${program}`);
  return fail(subject, `${name}: ${command} cannot be run`, 'Install it, or correct command in its [[subagents]] table.');
}

export async function checkSubagents(providers: readonly SubagentProvider[]): Promise<Finding[]> {
  return await Promise.all(providers.map(checkOne));
}
