/**
 * A server for a test, and what must hold of every server whatever was done to it: only valid frames on stdout, nothing on
 * stderr, no stack and no path of this program in an error, and an orderly exit.
 */
import type { Test } from 'tap';
import { settledCards } from './merged-updates.ts';
import { type Frame, isCommandList, projectRoot, type ServerOptions, ServerProcess } from './server-process.ts';

export interface StartOptions extends ServerOptions {
  /** `false` leaves `initialize` to the test. */
  readonly initialize?: false | object;
}

/** Starts a server that ends with the test at the latest. */
export async function startServer(t: Test, options: StartOptions = {}): Promise<ServerProcess> {
  const { initialize, ...rest } = options;
  const server = new ServerProcess(rest);
  t.teardown(() => server.dispose());
  if (initialize !== false) await server.initialize(initialize);
  return server;
}

/** Lets the server end as a leaving client does, and checks all it ever wrote. */
export async function endServer(t: Test, server: ServerProcess): Promise<void> {
  const exit = await server.close();
  t.same(exit, { code: 0, signal: null }, 'the server exits 0');
  checkOutput(t, server);
}

/** Checks what the server has written so far. */
export function checkOutput(t: Test, server: ServerProcess): void {
  t.same(server.violations, [], 'every line of stdout is one valid frame');
  t.equal(server.stderr, '', 'stderr is quiet');
  for (const { error } of server.frames) {
    if (error === undefined) continue;
    const text = JSON.stringify(error);
    if (!/\\n\s+at |node:internal|node_modules/.test(text) && !text.includes(projectRoot)) continue;
    t.fail(`an error shows the inside of the server: ${text}`);
  }
}

/** Sends bytes and gives every frame that came before the answer to a request sent behind them, once `answers` are there. */
export async function exchange(server: ServerProcess, bytes: string | Buffer, answers: number): Promise<Frame[]> {
  const from = server.frames.length;
  const come = (): Frame[] => server.frames.slice(from).filter((frame) => !isCommandList(frame));
  server.sendRaw(bytes);
  while (come().length < answers) await server.next(() => true, `answer ${come().length + 1} of ${answers}`);
  const sentinel = await server.request('session/list', {});
  return come().filter((frame) => frame !== sentinel);
}

/** Everything that was sent of one tool call, in order: how often and how early depends on how fast the machine is. */
export function sentOfCall(server: ServerProcess, sessionId: string, toolCallId: string): any[] {
  return server.updates(sessionId).filter((update) => update.toolCallId === toolCallId);
}

/** The same as if nothing had been shown before the call was whole, and before it had its result. */
export function updatesOfCall(server: ServerProcess, sessionId: string, toolCallId: string): any[] {
  return settledCards(sentOfCall(server, sessionId, toolCallId), {});
}

/** The ids of a session's tool calls, in the order in which they were announced. */
export function callIds(server: ServerProcess, sessionId: string): string[] {
  return server
    .updates(sessionId)
    .filter((update) => update.sessionUpdate === 'tool_call')
    .map((update) => update.toolCallId);
}

/** The statuses that a call went through, in order, repetitions left out. */
export function statusesOfCall(server: ServerProcess, sessionId: string, toolCallId: string): string[] {
  const statuses: string[] = updatesOfCall(server, sessionId, toolCallId).flatMap(({ status }) => (status === undefined ? [] : [status]));
  return statuses.filter((status, index) => status !== statuses[index - 1]);
}
