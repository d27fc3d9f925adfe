/**
 * `dsh-acp demo`: one server process, eight sessions at once, each in its own copy of the example project, driven by the
 * built-in model. Checks what came of it: it fails when a turn, a file or the server's end is not as it should be.
 */
import { cp, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { client, type ClientContext, methods, PROTOCOL_VERSION, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { testsPass } from './check-workspace.ts';
import { type DemoServer, startDemoServer } from './demo-server.ts';
import { createLiveView, type LiveView } from './live-view.ts';
import { SessionRun } from './session-run.ts';
import { summaryText } from './summary.ts';

const sessionCount = 8;
const deadlineMs = 60_000;
const output = process.stdout;

interface Scene {
  readonly scratch: string;
  readonly runs: readonly SessionRun[];
  readonly bySession: Map<string, SessionRun>;
  readonly server: DemoServer;
  readonly view: LiveView;
  readonly start: number;
  initializeMs: number;
}

async function prepareScene(packageRoot: string): Promise<Scene> {
  const scratch = await mkdtemp(join(tmpdir(), 'dsh-acp-demo-'));
  const runs: SessionRun[] = [];
  const view = createLiveView(output, runs);
  for (let number = 1; number <= sessionCount; number += 1) {
    const workspace = join(scratch, 'workspaces', `session-${number}`);
    await mkdir(workspace, { recursive: true });
    await cp(join(packageRoot, 'examples', 'inventory'), workspace, { recursive: true });
    runs.push(new SessionRun(`session ${number}`, workspace, (run, what) => view.changed(run, what)));
  }
  const first = runs[0];
  if (first === undefined || (await testsPass(first.workspace))) throw new Error('the example project has no failing test to begin with');
  const start = performance.now();
  return { scratch, runs, bySession: new Map(), view, start, server: startDemoServer(packageRoot, scratch), initializeMs: 0 };
}

/** Allows once, as a person would by a click; a request without that option is refused. */
function decide(scene: Scene, request: RequestPermissionRequest) {
  const option = request.options.find((each) => each.kind === 'allow_once');
  if (option === undefined) return { outcome: { outcome: 'cancelled' } } as const;
  scene.bySession.get(request.sessionId)?.onPermission(request.toolCall.title ?? request.toolCall.toolCallId);
  return { outcome: { outcome: 'selected', optionId: option.optionId } } as const;
}

async function drive(scene: Scene, agent: ClientContext): Promise<void> {
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: 'dsh-acp-demo', version: '1' },
  });
  scene.initializeMs = performance.now() - scene.start;
  await Promise.all(scene.runs.map((run) => run.run(agent, (sessionId) => scene.bySession.set(sessionId, run))));
}

/** Runs all sessions; a server that dies or hangs shows as problems of the sessions. */
async function playScene(scene: Scene): Promise<string | undefined> {
  const deadline = setTimeout(() => scene.server.kill(), deadlineMs);
  try {
    await client({ name: 'dsh-acp-demo' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => decide(scene, params))
      .onNotification(methods.client.session.update, ({ params }) => scene.bySession.get(params.sessionId)?.onUpdate(params))
      .connectWith(scene.server.stream, async (agent) => await drive(scene, agent));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(deadline);
    scene.view.end();
  }
}

/** Without this an interrupted demo would leave its server behind, and perhaps commands of it. A second signal ends at once. */
function endOnSignal(scene: Scene): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      void scene.server.stop().then(() => {
        output.write(`\nstopped; logs and workspaces are in ${scene.scratch}\n`);
        process.exit(130);
      });
    });
  }
}

/** @returns the exit code: 0 when everything that was checked is as it should be */
export async function runDemo(options: { packageRoot: string }): Promise<number> {
  output.write(`dsh-acp demo: one server, ${sessionCount} sessions, the built-in scripted model; no key, no network.\n`);
  const scene = await prepareScene(options.packageRoot);
  endOnSignal(scene);
  const problem = await playScene(scene);
  const exit = await scene.server.stop();
  const summary = { runs: scene.runs, seconds: (performance.now() - scene.start) / 1000, initializeMs: scene.initializeMs };
  const places = { stateDir: join(scene.scratch, 'state'), workspaces: join(scene.scratch, 'workspaces'), exit: exit.text };
  if (problem !== undefined) output.write(`\nthe connection failed: ${problem}\n`);
  try {
    output.write(await summaryText({ ...summary, ...places }));
  } catch (error) {
    output.write(`\nthere are no logs to count: ${error instanceof Error ? error.message : String(error)}\n`);
  }
  const good = problem === undefined && exit.clean && scene.runs.every((run) => run.state === 'done');
  if (!good) output.write(`\nthe demo failed; the server's stderr:\n${scene.server.stderr() || '(empty)\n'}`);
  return good ? 0 : 1;
}
