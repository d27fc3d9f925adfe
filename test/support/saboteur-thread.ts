/**
 * The real session thread with a saboteur beside it: does to its own thread what a broken dependency would, when a prompt asks for it.
 *
 * A prompt's line `[!throw 100]` (a bracketed line, which the scripted model passes over) acts 100 ms after the turn was asked for; the file
 * `.sabotaged` in the session's directory appears right before it acts. `[!throw on NAME]` acts when a file NAME appears there. A file
 * `.sabotage-attach` in the session's directory acts once, while a session is being attached.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { clientSecrets, settingsSecrets } from '../../src/shared/known-secrets.ts';
import type { SessionTask } from '../../src/shared/thread-protocol.ts';
import { hostSession } from '../../src/worker/session/host-session.ts';
import { threadContext } from '../../src/worker/session/thread-context.ts';
import { fileAppears } from './file-appears.ts';

if (isMainThread) throw new Error('this is the entry of a session thread');

/** Secrets that this thread knows: what it dies of names them. */
const held: string[] = [];

/** What a prompt can ask for. `ms` of `block` is how long the event loop stands still. */
const acts: Readonly<Record<string, (ms: number, cwd: string) => void>> = {
  throw: () => {
    throw new Error(`sabotage: thrown /secret/path ${held.join(' ')}`);
  },
  reject: () => void Promise.reject(new Error(`sabotage: rejected ${held.join(' ')}`)),
  exit: () => process.exit(0),
  /** One allocation that no heap takes: it ends the process, whatever the thread may hold. */
  abort: () => void 'x'.repeat(2 ** 27).split(''),
  spin: () => {
    for (;;) Math.random();
  },
  block: (ms) => {
    for (const end = performance.now() + ms; performance.now() < end; );
  },
  heap: () => {
    const kept: number[][] = [];
    // Pieces of 64 KB: a single large allocation would abort the whole process, whatever the thread's limit.
    for (;;) kept.push(Array.from({ length: 8000 }, () => 0.5));
  },
  /** Buffers, 8 MB at a time, while the thread stays alive to everything else. */
  buffers: () => {
    const kept: Buffer[] = [];
    setInterval(() => kept.push(Buffer.alloc(8 * 1024 * 1024, 1)), 20);
  },
  /** The same in one piece of work, up to 512 MB and then for ever. */
  hoard: () => {
    const kept: Buffer[] = [];
    for (;;) if (kept.length < 64) kept.push(Buffer.alloc(8 * 1024 * 1024, 1));
  },
  /** A child that the thread waits for. */
  spawn: (ms) => void spawnSync('sleep', [String(ms)]),
  /** From here on every write to the log meets ENOSPC. */
  full: (_ms, cwd) => replaceLog('/dev/full', cwd),
  /** EIO: nothing is mapped at the addresses that a log's offsets would be. */
  eio: (_ms, cwd) => replaceLog('/proc/self/mem', cwd),
  print: () => {
    console.log('{"jsonrpc":"2.0","method":"stray/console"}');
    console.error('stray console.error');
    process.stdout.write('{"jsonrpc":"2.0","method":"stray/stdout"}\n');
    process.stderr.write('stray stderr\n');
  },
};

export default async function hostWithSaboteur(task: SessionTask, afterTurn?: () => void): Promise<void> {
  held.splice(0, held.length, ...settingsSecrets(task.settings), ...clientSecrets(task.options.env, task.mcpServers));
  await sabotageAttach(task.cwd);
  // Beside comlink on the same port: what is asked for happens in the midst of the turn that asks.
  task.port.on('message', (message: PromptCall) => sabotagePrompt(message, task.cwd));
  await hostSession(task, threadContext(), afterTurn);
}

/** The no-op that keeps a thread spare, as in the real entry. */
export const spare = (): void => undefined;

interface PromptCall {
  readonly type?: string;
  readonly path?: readonly string[];
  readonly argumentList?: readonly { readonly value?: unknown }[];
}

function sabotagePrompt(message: PromptCall, cwd: string): void {
  if (message.type !== 'APPLY' || message.path?.[0] !== 'prompt') return;
  const text = JSON.stringify(message.argumentList?.[1]?.value ?? '');
  const actNow = (name: string | undefined, ms = 0): void => {
    writeFileSync(join(cwd, '.sabotaged'), '');
    act(name, ms, cwd);
  };
  for (const [, name, after, ms] of text.matchAll(/\[!(\w+) (\d+)(?: (\d+))?\]/g)) {
    setTimeout(() => actNow(name, Number(ms ?? 0)), Number(after));
  }
  for (const [, name, file = ''] of text.matchAll(/\[!(\w+) on ([\w.-]+)\]/g)) {
    // Not within the promise: what is thrown there would be a rejection.
    void fileAppears(join(cwd, file)).then(() => setImmediate(() => actNow(name)));
  }
}

async function sabotageAttach(cwd: string): Promise<void> {
  const path = join(cwd, '.sabotage-attach');
  let name: string;
  try {
    name = readFileSync(path, 'utf8').trim();
  } catch {
    return; // Most sessions are attached in peace.
  }
  // `always …` stays; anything else acts once.
  if (!name.startsWith('always ')) rmSync(path);
  const kind = name.replace('always ', '');
  if (kind === 'hang') await new Promise(() => undefined);
  else if (kind === 'refuse') throw new Error('sabotage: refused');
  else if (kind === 'throw') {
    setImmediate(() => act('throw', 0, cwd));
    await new Promise(() => undefined);
  } else act(kind, 0, cwd);
}

/** Puts another file behind the descriptors of the logs that this process holds open. The file `replaced` appears afterwards. */
function replaceLog(path: string, cwd: string): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    if (!leadsToLog(fd)) continue;
    closeSync(fd);
    // The lowest free number is given first; those below it are handed back.
    const below: number[] = [];
    for (let opened = openSync(path, 'r+'); opened !== fd; opened = openSync(path, 'r+')) below.push(opened);
    for (const other of below) closeSync(other);
  }
  writeFileSync(join(cwd, 'replaced'), '');
}

function leadsToLog(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).endsWith('.jsonl');
  } catch {
    return false; // It was the listing's own.
  }
}

function act(name: string | undefined, ms: number, cwd: string): void {
  const found = acts[name ?? ''];
  if (found === undefined) throw new Error(`no such sabotage: ${name ?? ''}`);
  found(ms, cwd);
}
