/**
 * Hosts one session on this thread, from attach to its leaving: opens the log, rebuilds the agent from it, serves main's
 * calls, and gives everything back at the end. The composition root of a session; runs in-process in tests.
 */
import { once } from 'node:events';
import { expose, portEndpoint } from '../../shared/comlink.ts';
import { toWireError } from '../../shared/errors.ts';
import { sessionSecrets } from '../../shared/known-secrets.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import type { SessionApi, SessionStarted, SessionTask } from '../../shared/thread-protocol.ts';
import { EventLog } from '../log/event-log.ts';
import { AttachedAgent } from './attached-agent.ts';
import { ReadOnlySession } from './read-only-session.ts';
import { sandboxReport } from './session-attach.ts';
import type { ThreadContext } from './thread-context.ts';

/**
 * Fulfils when the session has left, with its log closed and its processes gone. Rejects for nothing main can expect.
 *
 * @param afterTurn called behind the end of each turn
 */
export async function hostSession(task: SessionTask, thread: ThreadContext, afterTurn?: () => void): Promise<void> {
  const closedByMain = once(task.port, 'close');
  const hosted = await attach(task, thread, afterTurn);
  if (hosted === undefined) return;
  try {
    expose(hosted, portEndpoint(task.port));
    // Main closes the port when it has given up waiting for this attach.
    await Promise.race([hosted.left, closedByMain.then(() => hosted.dispose())]);
  } finally {
    thread.sessionIds.delete(task.sessionId);
    task.port.close();
  }
}

type Hosted = SessionApi & { readonly left: Promise<void>; readonly chosen: Chosen };

async function attach(task: SessionTask, thread: ThreadContext, afterTurn: (() => void) | undefined): Promise<Hosted | undefined> {
  try {
    const { hosted, eventCount } = task.readOnly === true ? lookAt(task, thread) : await goOnWith(task, thread, afterTurn);
    thread.sessionIds.add(task.sessionId);
    reportStarted(task, thread, { eventCount, chosen: hosted.chosen });
    return hosted;
  } catch (error) {
    task.port.postMessage({ kind: 'refused', error: toWireError(error) } satisfies SessionStarted);
    task.port.close();
    return undefined;
  }
}

interface Attached {
  readonly hosted: Hosted;
  readonly eventCount: number;
}

function lookAt(task: SessionTask, thread: ThreadContext): Attached {
  return { hosted: new ReadOnlySession(task, thread), eventCount: 0 };
}

async function goOnWith(task: SessionTask, thread: ThreadContext, afterTurn: (() => void) | undefined): Promise<Attached> {
  const host = (child: SessionTask): Promise<void> => hostSession(child, thread, afterTurn);
  const agent = new AttachedAgent(task, thread, { host, ...(afterTurn === undefined ? {} : { afterTurn }) });
  const sandbox = sandboxReport(task);
  const log = await EventLog.open({
    path: task.logPath,
    lockPath: task.lockPath,
    serverNonce: task.serverNonce,
    threadId: thread.threadId,
    secrets: sessionSecrets(task),
    ...(task.givenUp === undefined ? {} : { isGivenUp: whetherSet(task.givenUp) }),
    onEvent: (event) => agent.observe(event),
  });
  await startOn(agent, log, sandbox);
  return { hosted: agent, eventCount: log.eventCount };
}

function whetherSet(flag: SharedArrayBuffer): () => boolean {
  const words = new Int32Array(flag);
  return () => Atomics.load(words, 0) === 1;
}

/** A disk that takes no more refuses the session: then the log, and its lock above all, is given back. */
async function startOn(agent: AttachedAgent, log: EventLog, sandbox: ReturnType<typeof sandboxReport>): Promise<void> {
  try {
    await agent.settle(log);
    agent.start(log, await sandbox);
  } catch (error) {
    // The log was never written by this session, so its close has nothing of it to report.
    await log.close().catch(() => undefined);
    throw error;
  }
}

function reportStarted(task: SessionTask, thread: ThreadContext, { eventCount, chosen }: { eventCount: number; chosen: Chosen }): void {
  const taken = thread.takePorts();
  const started: SessionStarted = {
    kind: 'started',
    threadId: thread.threadId,
    eventCount,
    chosen,
    ...(taken === undefined ? {} : { ports: taken.ports }),
  };
  task.port.postMessage(started, taken?.transfer ?? []);
}
