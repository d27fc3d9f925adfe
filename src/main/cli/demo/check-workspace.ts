/**
 * The proof that the sessions' tools were real: looked up on disk, and tried with the project's own tests, without asking
 * the server.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fault, testFile } from './demo-script.ts';

const testTimeoutMs = 20_000;

/** Whether the project's tests pass there. Never rejects. */
export async function testsPass(workspace: string): Promise<boolean> {
  // Set inside a test run of Node: the child would report to that run, in another format.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  return await new Promise((resolve) => {
    execFile(process.execPath, [testFile], { cwd: workspace, timeout: testTimeoutMs, env }, (error) => resolve(error === null));
  });
}

/** What is wrong with a workspace in which the fault should be mended. */
export async function findWorkspaceFaults(workspace: string): Promise<string[]> {
  const text = await readFile(join(workspace, fault.file), 'utf8');
  const faults: string[] = [];
  if (text.includes(fault.wrong) || !text.includes(fault.right)) faults.push(`${fault.file} was not mended`);
  if (!(await testsPass(workspace))) faults.push('the tests of the project still fail');
  return faults;
}
