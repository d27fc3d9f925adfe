/**
 * The `bash` tool: one command in a fresh shell, waited for or in the background.
 *
 * The process itself lives in the broker thread; here stand the arguments, the wording and the cancel.
 */
import { resolve } from 'node:path';
import type { CommandSpec, RunResult } from '../../shared/broker-protocol.ts';
import { ServerError } from '../../shared/errors.ts';
import type { ToolResultView } from '../../shared/render-intents.ts';
import { fencedText } from '../display/fenced-text.ts';
import { titleLine } from '../display/title-line.ts';
import { commandOutcome, keptBytesPerStream, notStarted } from './bash-result.ts';
import { commandShell } from './bash-shell.ts';
import { networkOffMark } from './contained-marks.ts';
import { decideDirectory, isDecidedDirectory } from './decided-directory.ts';
import { textSoFar } from './draft-view.ts';
import { failed } from './outcome.ts';
import { RunFollower } from './run-follower.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

export interface BashArgs {
  readonly command: string;
  readonly description: string;
  readonly timeoutMs?: number;
  readonly workdir?: string;
  readonly run_in_background?: boolean;
  readonly network?: boolean;
}

const maxTimeoutMs = 600_000;
const spillMaxBytes = 64 * 1024 * 1024;
/** From an abort to an outcome, even if the broker cannot prove the end. The broker itself needs about 300 ms. */
const abortLimitMs = 1500;

export const bashTool: Tool<BashArgs> = {
  name: 'bash',
  description: [
    'Runs a command with `bash -c` in a fresh shell: no state is kept between calls, stdin is empty, and no terminal is attached.',
    `Each of stdout and stderr is kept up to ${keptBytesPerStream} bytes (head and tail); the whole of a longer output is saved to a file that is named in the result.`,
    'When the command ends, processes it left behind are ended too. For a server or a watcher set run_in_background: it returns a task id at once; read it with bash_output, end it with bash_kill.',
    'Use workdir instead of cd. Prefer the read, edit, glob and grep tools to cat, sed, find and grep.',
  ].join('\n'),
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', minLength: 1, description: 'The command line.' },
      description: { type: 'string', description: 'What the command does, in five to ten words.' },
      timeoutMs: {
        type: 'integer',
        minimum: 1,
        maximum: maxTimeoutMs,
        description: 'Time limit in milliseconds. Background tasks have none.',
      },
      workdir: { type: 'string', minLength: 1, description: 'Where to run, absolute or relative to the working directory of the session.' },
      run_in_background: { type: 'boolean', description: 'Return a task id at once and let the command run on.' },
      network: {
        type: 'boolean',
        description:
          'Asks for the network, which commands in a sandbox do not have: for downloads, and for servers that others shall reach.',
      },
    },
    required: ['command', 'description'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: (args, { cwd }) => {
    const directory = workingDirectory(args, cwd);
    decideDirectory(args, directory);
    const background = args.run_in_background === true ? ({ background: true } as const) : {};
    const network = args.network === true ? ({ network: true } as const) : {};
    return { kind: 'execute', command: args.command, cwd: directory, ...background, ...network };
  },
  execute: async (args, context) => {
    if (context.signal.aborted) return { text: '[aborted: the command was not started]', isError: true, code: 'ABORTED' };
    if (!isDecidedDirectory(args, workingDirectory(args, context.cwd))) return directoryChanged;
    try {
      return args.run_in_background === true ? await startBackground(args, context) : await runForeground(args, context);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      return { text: `The command could not be run: ${error.message}`, isError: true, code: error.code };
    }
  },
  presentDraft: (draft) => ({ title: oneLine(textSoFar(draft, 'command') ?? 'Run a command'), kind: 'execute' }),
  presentCall: (args, { cwd }) => {
    const title = oneLine(args.command);
    // Bounded, as it stands before the command: it must not take the room in which that is shown.
    const description = titleLine(args.description);
    if (args.run_in_background === true) {
      // A title is one short line. Whoever allows a command must be able to read all of it.
      const whole = titleLine(title) === title ? [] : [fencedText(title, 'sh')];
      const content = [...(description === '' ? [] : [description]), ...whole];
      return { card: 'generic', title, kind: 'execute', rawInput: { ...args }, content };
    }
    return { card: 'terminal', title, description, cwd: workingDirectory(args, cwd) };
  },
  presentResult: (args, outcome) => {
    if (args.run_in_background === true) return { card: 'generic', content: [outcome.text] };
    return terminalResult(outcome);
  },
};

const directoryChanged = failed(
  'FS_PATH_CHANGED',
  'workdir leads to another place than when the call was checked (a link or a directory was swapped). Nothing was run. Make the call again.',
);

async function runForeground(args: BashArgs, context: ToolContext): Promise<ToolOutcome> {
  const spec = commandSpec(args, context);
  const timeoutMs = Math.min(args.timeoutMs ?? context.commandTimeoutMs, maxTimeoutMs);
  const run = context.broker.run({ ...spec, runId: context.callId, timeoutMs, showBytes: keptBytesPerStream });
  const follower = followRun(context);
  const result = await untilAborted(run, context).finally(() => follower?.stop());
  if (result === undefined) {
    return { text: '[aborted: the command was ended, but its end is not proven yet]', isError: true, code: 'ABORTED' };
  }
  await follower?.finish(result.unread);
  return commandOutcome(result, { cwd: spec.cwd, timeoutMs, spillMaxBytes, askedForNetwork: args.network === true });
}

function followRun({ live, broker, sessionId, callId }: ToolContext): RunFollower | undefined {
  return live === undefined ? undefined : new RunFollower(live, { broker, owner: sessionId, runId: callId });
}

/** The result; `undefined` when the call was aborted and the result did not come soon. */
async function untilAborted(run: Promise<RunResult>, context: ToolContext): Promise<RunResult | undefined> {
  const { signal, broker, sessionId, callId } = context;
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => undefined;
  const late = new Promise<undefined>((resolve) => {
    abort = () => {
      // A broker that is lost rejects the run itself; nobody needs to hear of it twice.
      broker.cancelRun(sessionId, callId).catch(() => undefined);
      timer = setTimeout(() => resolve(undefined), abortLimitMs);
    };
  });
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([run, late]);
  } finally {
    signal.removeEventListener('abort', abort);
    clearTimeout(timer);
  }
}

async function startBackground(args: BashArgs, context: ToolContext): Promise<ToolOutcome> {
  const started = await context.broker.startBackground(commandSpec(args, context));
  if ('spawnError' in started) {
    return notStarted(started);
  }
  const { taskId, networkOff } = started;
  const text = `Started background task ${taskId}. Read it with bash_output, end it with bash_kill (task_id: ${taskId}).`;
  const cut = networkOff === undefined ? '' : `\n${networkOffMark(networkOff, args.network === true)}`;
  return { text: `${text}${cut}`, isError: false, meta: { taskId } };
}

function commandSpec(args: BashArgs, context: ToolContext): CommandSpec {
  return {
    owner: context.sessionId,
    command: commandShell(),
    args: ['-c', args.command],
    cwd: workingDirectory(args, context.cwd),
    env: context.env,
    ...(context.network === undefined ? {} : { network: context.network }),
    ...(context.sandbox === undefined ? {} : { sandbox: context.sandbox }),
    ...(context.unasked === undefined ? {} : { unasked: context.unasked }),
    roots: context.roots ?? [context.cwd],
    keepBytes: keptBytesPerStream,
    spillDir: context.spillDir,
    spillMaxBytes,
  };
}

/** A command that never ran has no output: its text is then what is shown. */
function terminalResult({ meta }: ToolOutcome): ToolResultView {
  const { output, notes, exitCode, signal } = meta ?? {};
  return {
    card: 'terminal',
    ...(typeof output === 'string' ? { output } : {}),
    ...(Array.isArray(notes) ? { notes: notes.filter((note) => typeof note === 'string') } : {}),
    ...(typeof exitCode === 'number' ? { exitCode } : {}),
    ...(typeof signal === 'string' ? { signal } : {}),
  };
}

function workingDirectory(args: BashArgs, cwd: string): string {
  return resolve(cwd, args.workdir ?? '.');
}

/** Titles have no line breaks: clients show one line and some cut at the first. */
function oneLine(command: string): string {
  return command.trim().replaceAll(/\s*[\r\n]+\s*/g, ' ⏎ ');
}
