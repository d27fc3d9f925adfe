import { mkdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { BrokerApi } from '../../../../src/shared/broker-protocol.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { Broker } from '../../../../src/worker/broker/broker.ts';
import { callCard } from '../../../../src/worker/projection/call-card.ts';
import { bashTool } from '../../../../src/worker/tools/bash.ts';
import { bashKillTool } from '../../../../src/worker/tools/bash-kill.ts';
import { bashOutputTool } from '../../../../src/worker/tools/bash-output.ts';
import { clip } from '../../../../src/worker/tools/bash-result.ts';
import { findShell } from '../../../../src/worker/tools/bash-shell.ts';
import type { ToolContext, ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { testContext } from './tool-context.ts';

let lastCall = 0;

function makeContext(t: Test, more: Partial<ToolContext> = {}): ToolContext & { readonly abort: () => void } {
  const broker = new Broker({
    mark: `mark-${process.pid}-${Math.random()}`,
    ambient: process.env,
    onGroupStarted: () => undefined,
    onGroupEnded: () => undefined,
  });
  t.teardown(() => broker.shutdown());
  const controller = new AbortController();
  const folder = realpathSync(t.testdir());
  mkdirSync(join(folder, 'sub'));
  lastCall += 1;
  return {
    ...testContext(folder),
    sessionId: 'session-a',
    callId: `call-${lastCall}`,
    signal: controller.signal,
    broker,
    spillDir: join(folder, 'spill'),
    commandTimeoutMs: 20_000,
    abort: () => controller.abort(),
    ...more,
  };
}

function metaText(outcome: ToolOutcome, key: string): string {
  const value = outcome.meta?.[key];
  if (typeof value !== 'string') throw new Error(`the outcome has no text ${key}`);
  return value;
}

const bash = (command: string) => ({ command, description: 'does something' });

t.test('the text has stdout, stderr under its head, and the exit code; a failing command is no error', async (t) => {
  const context = makeContext(t);
  const outcome = await bashTool.execute(bash('echo out; echo err >&2; exit 3'), context);
  t.same(outcome, {
    text: 'out\n[stderr]\nerr\n[exit code: 3]',
    isError: false,
    meta: { exitCode: 3, signal: null, timedOut: false, output: 'out\nerr\n', cwd: context.cwd },
  });
});

t.test('a command without output says so', async (t) => {
  const context = makeContext(t);
  t.match(await bashTool.execute(bash('true'), context), { text: '(no output)', isError: false, meta: { exitCode: 0, output: '' } });
  t.match(await bashTool.execute(bash('exit 7'), { ...context, callId: 'x' }), { text: '(no output)\n[exit code: 7]' });
});

t.test("the session's variables are laid over the environment of every command, and are in no result", async (t) => {
  const secret = 'canary-8c1f2e';
  const context = makeContext(t, { env: { GIVEN_TOKEN: secret, HOME: '/given' } });
  const outcome = await bashTool.execute(bash('test "$GIVEN_TOKEN" = canary-8c1f2e && echo "$HOME ${PATH:+path}"'), context);
  t.match(outcome, { text: '/given path', isError: false });
  const started = await bashTool.execute({ ...bash('echo "${#GIVEN_TOKEN}"'), run_in_background: true }, { ...context, callId: 'bg' });
  const taskId = metaText(started, 'taskId');
  const output = await bashOutputTool.execute({ task_id: taskId, wait_ms: 5000 }, context);
  t.match(output.text, '13');
  const missing = await bashTool.execute({ ...bash('true'), workdir: 'none' }, { ...context, callId: 'missing' });
  const large = { ...context, callId: 'large', env: { GIVEN_TOKEN: secret, LARGE: 'x'.repeat(200_000) } };
  const tooLarge = await bashTool.execute(bash('true'), large);
  t.match(tooLarge, { isError: true, code: 'SPAWN_FAILED' });
  const broken = await bashTool.execute(bash('true'), { ...context, callId: 'nul', env: { GIVEN_TOKEN: `${secret}\0` } });
  t.match(broken, { isError: true, code: 'SPAWN_FAILED' });
  t.notMatch(JSON.stringify([outcome, started, output, missing, tooLarge, broken]), secret);
});

t.test('a call that was allowed without a network only starts its command so, in front and in the background', async (t) => {
  const context = makeContext(t);
  if (!(await context.broker.canCutNetwork())) {
    const refused = await bashTool.execute(bash('true'), { ...context, network: 'none' });
    t.match(refused, { isError: true, code: 'SPAWN_FAILED', text: /cannot be cut off/ });
    return;
  }
  const own = readlinkSync('/proc/self/ns/net');
  const where = bash('readlink /proc/self/ns/net');
  t.equal((await bashTool.execute(where, context)).text, own);
  const cut = await bashTool.execute(where, { ...context, callId: 'cut', network: 'none' });
  t.match(cut.text, /^net:/);
  t.not(cut.text, own);
  const started = await bashTool.execute({ ...where, run_in_background: true }, { ...context, callId: 'bg', network: 'none' });
  const output = await bashOutputTool.execute({ task_id: metaText(started, 'taskId'), wait_ms: 5000 }, context);
  t.notMatch(output.text, own);
});

t.test('the shell is bash, and starts in the directory that was asked for', async (t) => {
  const context = makeContext(t);
  const inSub = { ...bash('pwd; [[ a < b ]] && echo bash'), workdir: 'sub' };
  t.equal((await bashTool.execute(inSub, context)).text, `${join(context.cwd, 'sub')}\nbash`);
  t.same(bashTool.access(inSub, context), { kind: 'execute', command: inSub.command, cwd: join(context.cwd, 'sub') });
  t.match(bashTool.access({ ...inSub, workdir: '/' }, context), { cwd: '/' });
  const missing = await bashTool.execute({ ...bash('pwd'), workdir: 'none' }, { ...context, callId: 'missing' });
  t.match(missing, { isError: true, code: 'SPAWN_FAILED', text: /ENOENT: the working directory .*none/ });
});

t.test('bash is looked for on the path; without it sh has to do', async (t) => {
  t.match(findShell(process.env.PATH), /^\/.*\/bash$/);
  t.match(findShell(undefined), /bash$|^sh$/);
});

t.test('a signal and a time limit are said each by itself', async (t) => {
  const context = makeContext(t);
  const killed = await bashTool.execute(bash('echo hi; kill -9 $$'), context);
  t.match(killed, { text: 'hi\n[killed by signal SIGKILL]', isError: false, meta: { exitCode: null, signal: 'SIGKILL', timedOut: false } });
  const late = await bashTool.execute({ ...bash('echo hi; sleep 300'), timeoutMs: 1000 }, { ...context, callId: 'late' });
  t.match(late, { text: 'hi\n[timed out after 1000 ms]\n[killed by signal SIGTERM]', isError: false, meta: { timedOut: true } });
  const polite = bash(`trap 'echo bye; exit 5' TERM; sleep 300 & wait`);
  const cleaned = await bashTool.execute(polite, { ...context, callId: 'polite', commandTimeoutMs: 1000 });
  t.match(cleaned, { text: 'bye\n[timed out after 1000 ms]\n[exit code: 5]', meta: { exitCode: 5, signal: null, timedOut: true } });
});

t.test('a long output keeps head and tail, and names the file with all of it', async (t) => {
  const context = makeContext(t);
  const outcome = await bashTool.execute(bash('seq 1 100000; echo problem >&2'), context);
  t.ok(Buffer.byteLength(outcome.text) < 66_000);
  t.ok(outcome.text.startsWith('1\n2\n'));
  const [, path] =
    /99999\n100000\n\[stderr\]\nproblem\n\[stdout truncated: 588895 bytes in all; all of it is in (.+)\]$/.exec(outcome.text) ?? [];
  t.equal(readFileSync(path ?? '', 'utf8').split('\n').length, 100_001);
  t.ok(Buffer.byteLength(metaText(outcome, 'output')) <= 64 * 1024 + 64);
});

t.test('binary output stays bounded as text', async (t) => {
  const outcome = await bashTool.execute(bash('head -c 1000000 /dev/zero | tr "\\0" "\\377"; head -c 100 /dev/urandom'), makeContext(t));
  t.ok(Buffer.byteLength(outcome.text) < 82_000);
  t.ok(Buffer.byteLength(metaText(outcome, 'output')) <= 64 * 1024 + 64);
});

t.test('clipping never breaks a character', async (t) => {
  for (let size = 100; size < 110; size += 1) {
    const clipped = clip('😀€é'.repeat(100), size);
    t.notMatch(clipped, /\uFFFD/);
    t.match(clipped, /bytes left out/);
  }
  t.equal(clip('short', 100), 'short');
});

t.test('an abort ends even a command that ignores TERM, quickly, and keeps what it said', async (t) => {
  const context = makeContext(t);
  const running = bashTool.execute(bash(`trap '' TERM; echo begun; while :; do sleep 0.05; done`), context);
  await delay(200);
  const start = performance.now();
  context.abort();
  const outcome = await running;
  t.ok(performance.now() - start < 10_000, `took ${(performance.now() - start).toFixed(0)} ms`);
  t.match(outcome, { isError: true, code: 'ABORTED', text: /^begun\n\[aborted: .*\]\n\[killed by signal SIGKILL\]$/ });
  t.match(await bashTool.execute(bash('echo never'), context), { isError: true, code: 'ABORTED', text: /not started/ });
});

t.test('an abort has an outcome even if the broker is stuck, and a lost broker is an outcome', async (t) => {
  const stuck = { run: () => new Promise(() => undefined), cancelRun: () => new Promise(() => undefined) } as unknown as BrokerApi;
  const context = makeContext(t, { broker: stuck });
  const running = bashTool.execute(bash('true'), context);
  context.abort();
  t.match(await running, { isError: true, code: 'ABORTED', text: /not proven/ });
  const fail = () => Promise.reject(new ServerError('THREAD_LOST', 'gone'));
  const lost = makeContext(t, { broker: { run: fail, readBackground: fail, killBackground: fail } as unknown as BrokerApi });
  t.match(await bashTool.execute(bash('true'), lost), { isError: true, code: 'THREAD_LOST' });
  t.match(await bashOutputTool.execute({ task_id: 'bash-1' }, lost), { isError: true, code: 'THREAD_LOST' });
  t.match(await bashKillTool.execute({ task_id: 'bash-1' }, lost), { isError: true, code: 'THREAD_LOST' });
});

t.test('a background task is started, read and ended', async (t) => {
  const context = makeContext(t);
  const started = await bashTool.execute({ ...bash('echo one; sleep 300'), run_in_background: true }, context);
  const taskId = metaText(started, 'taskId');
  t.match(started, { isError: false, text: new RegExp(`^Started background task ${taskId}\\.`) });
  t.match(await bashOutputTool.execute({ task_id: taskId, wait_ms: 5000 }, context), { isError: false, text: 'one\n[status: running]' });
  t.match(await bashOutputTool.execute({ task_id: taskId, wait_ms: 50 }, context), { text: '(no new output)\n[status: running]' });
  const foreign = { ...context, sessionId: 'session-b' };
  for (const tool of [bashOutputTool, bashKillTool]) {
    t.match(await tool.execute({ task_id: taskId }, foreign), {
      isError: true,
      code: 'TASK_FOREIGN',
      text: `task ${taskId} belongs to another session`,
    });
    t.match(await tool.execute({ task_id: 'bash-0' }, context), { isError: true, code: 'TASK_NOT_FOUND' });
  }
  t.match(await bashKillTool.execute({ task_id: taskId }, context), { isError: false, text: /\[status: killed by SIGTERM\]$/ });
  t.match(await bashOutputTool.execute({ task_id: taskId }, context), { text: '(no new output)\n[status: killed by SIGTERM]' });
});

t.test('waiting for a task ends with the task, and with an abort', async (t) => {
  const context = makeContext(t);
  const failing = await bashTool.execute({ ...bash('sleep 0.4; exit 2'), run_in_background: true }, context);
  const waited = await bashOutputTool.execute({ task_id: metaText(failing, 'taskId'), wait_ms: 10_000 }, context);
  t.match(waited, { text: '(no new output)\n[status: completed, exit code: 2]', meta: { state: 'exited', exitCode: 2 } });
  const quiet = await bashTool.execute({ ...bash('sleep 300'), run_in_background: true }, context);
  const waiting = bashOutputTool.execute({ task_id: metaText(quiet, 'taskId'), wait_ms: 60_000 }, context);
  await delay(50);
  const start = performance.now();
  context.abort();
  t.match(await waiting, { isError: true, code: 'ABORTED' });
  t.ok(performance.now() - start < 10_000);
});

t.test('presentation', async (t) => {
  const at = { cwd: '/w' };
  const call = { command: 'make a\n  make b\r\n', description: 'Builds', workdir: 'sub' };
  t.same(bashTool.presentCall(call, at), { card: 'terminal', title: 'make a ⏎ make b', description: 'Builds', cwd: '/w/sub' });
  t.match(bashTool.presentCall({ ...call, run_in_background: true }, at), { card: 'generic', title: 'make a ⏎ make b', kind: 'execute' });
  const meta = { exitCode: null, signal: 'SIGKILL', timedOut: false, output: 'x\n[exit code: 0]', cwd: '/w' };
  t.same(bashTool.presentResult(call, { text: 'x', isError: false, meta }, at), {
    card: 'terminal',
    output: 'x\n[exit code: 0]',
    signal: 'SIGKILL',
  });
  t.same(bashTool.presentResult(call, { text: 'not started', isError: true, code: 'SPAWN_FAILED' }, at), {
    card: 'terminal',
  });
  t.match(bashTool.presentResult({ ...call, run_in_background: true }, { text: 'id', isError: false }, at), {
    card: 'generic',
    content: ['id'],
  });
  t.same(bashOutputTool.access({ task_id: 'bash-1' }, at), { kind: 'none' });
  t.match(bashKillTool.presentCall({ task_id: 'bash-1' }, at), { card: 'generic', kind: 'execute', title: 'End bash-1' });
  t.match(bashOutputTool.presentResult({ task_id: 'bash-1' }, { text: 'news', isError: false }, at), { content: ['news'] });
});

t.test('no description takes the room in which a command is shown', async (t) => {
  const command = `${'echo all is well; '.repeat(1000)}touch hidden`;
  const description = `\`\`\`\n\u202e${'harmless '.repeat(200_000)}`;
  for (const args of [
    { command, description },
    { command, description, run_in_background: true },
  ]) {
    const view = bashTool.presentCall(args, { cwd: '/w' });
    const card = callCard(view, { callId: 'c', toolName: 'bash', cwd: '/w', terminalOutput: false, rawInput: args });
    t.match(JSON.stringify(card.content), /touch hidden/);
    t.notMatch(JSON.stringify(card.content), /\u202e/);
  }
});
