/**
 * The built-in model that needs no key: a deterministic interpreter of a small command language, behind the same interface as
 * a real model. It drives the real loop, tools, permissions and log.
 *
 * It must never pretend: it says what it is, says when it does not understand, and reports counts instead of conclusions.
 */
import type { ToolCallRequest } from '../../shared/events.ts';
import {
  type ModelAdapter,
  type ModelEvent,
  ModelFailure,
  type ModelFailureCode,
  type ModelFinish,
  type ModelMessage,
  type ModelRequest,
  type StreamOptions,
} from './model-adapter.ts';
import { planScript, type ScriptPlan, type ScriptStep } from './script-plan.ts';
import { type ScriptedCommand, scriptedCommandHelp } from './scripted-command.ts';
import { fittingArgs, lastJobId } from './scripted-delegation.ts';
import { usedCallIds } from './tool-call-joiner.ts';
import { WordStream } from './word-stream.ts';

const notice = '[scripted demo model: it follows written commands and understands no language]\n';
const advice =
  'For a real model run `dsh-acp login` or set DEEPSEEK_API_KEY, or give base_url and model of an OpenAI-compatible server (Ollama, vLLM, llama.cpp), and start again.';

const failureCodes: Readonly<Record<Exclude<ModelFailureCode, 'ABORTED'>, number | undefined>> = {
  AUTH: 401,
  QUOTA: 402,
  RATE_LIMIT: 429,
  INVALID_REQUEST: 400,
  CONTEXT_WINDOW: 400,
  SERVER: 500,
  TRANSPORT: undefined,
  TIMEOUT: undefined,
  STREAM_CLOSED: undefined,
  MALFORMED_RESPONSE: undefined,
  EMPTY_RESPONSE: undefined,
  SCRIPT_MISMATCH: undefined,
};

function charsOf(message: ModelMessage): number {
  if (message.role !== 'assistant') return message.text.length;
  const calls = message.toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return message.text.length + message.reasoning.length + calls;
}

/** The id in the result of the newest background command. */
function lastTaskId(messages: readonly ModelMessage[]): string | undefined {
  const started = new Set<string>();
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const call of message.toolCalls)
      if (call.name === 'bash' && call.arguments.includes('"run_in_background":true')) started.add(call.callId);
  }
  const result = messages.findLast(
    (message) => message.role === 'tool' && started.has(message.callId) && /\bbash-\d+\b/.test(message.text),
  );
  return result === undefined ? undefined : /\bbash-\d+\b/.exec(result.text)?.[0];
}

function summaryOf(plan: ScriptPlan): string {
  const counts = new Map<string, number>();
  let results = 0;
  let chars = 0;
  for (const message of plan.since) {
    if (message.role === 'assistant') for (const call of message.toolCalls) counts.set(call.name, (counts.get(call.name) ?? 0) + 1);
    if (message.role === 'tool') {
      results += 1;
      chars += message.text.length;
    }
  }
  if (results === 0) return '';
  const names = [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
  return `The script is done. Tool calls: ${names}. Results: ${results}, ${chars} characters together.`;
}

export class ScriptedModel implements ModelAdapter {
  readonly provider = 'scripted';
  readonly model = 'scripted';
  readonly contextWindow = 1_000_000;
  readonly #paceMs: number;
  /** How often each `fail CODE TIMES` has failed, by its place. */
  readonly #failures = new Map<string, number>();

  constructor(paceMs: number) {
    this.#paceMs = paceMs;
  }

  async stream(request: ModelRequest, sink: (event: ModelEvent) => void, options: StreamOptions): Promise<ModelFinish> {
    const maxChars = (request.maxOutputTokens || Infinity) * 4;
    const out = new WordStream(sink, options, { paceMs: this.#paceMs, maxChars });
    out.checkAbort();
    const { messages } = request;
    if (!messages.some((message) => message.role === 'assistant')) await out.delta('text', notice);
    const plan = planScript(messages);
    const step = plan?.steps[plan.position];
    if (plan === undefined)
      await out.words(
        'text',
        `I am the scripted demo model and cannot answer this. I follow commands, one per line:\n${scriptedCommandHelp}\n${advice}`,
      );
    else if (step !== undefined) await this.#narrate(step, out, `${messages.length - plan.since.length}:${plan.position}`);
    const toolCalls = step === undefined || out.cut ? [] : callsOf(step, request);
    for (const call of toolCalls) await out.call(call);
    if (plan !== undefined && toolCalls.length === 0 && !out.cut) await this.#conclude(plan, step, out);
    return finishOf(request, out, toolCalls);
  }

  async #narrate(step: ScriptStep, out: WordStream, place: string): Promise<void> {
    for (const [index, command] of step.entries()) {
      if (command.kind === 'think') await out.words('reasoning', `${command.text}\n`);
      else if (command.kind === 'say') await out.words('text', `${command.text}\n`);
      else if (command.kind === 'unknown') await out.words('text', `I do not understand this line: ${command.line.slice(0, 200)}\n`);
      else if (command.kind === 'wait') await waitSlowly(command.ms, out);
      else if (command.kind === 'repeat') await repeat(command, out);
      else if (command.kind === 'fail') this.#fail(command, `${place}:${index}`);
    }
  }

  #fail(command: Extract<ScriptedCommand, { kind: 'fail' }>, place: string): void {
    if (!Object.hasOwn(failureCodes, command.code)) {
      throw new ModelFailure('INVALID_REQUEST', `fail: ${command.code} is no code. Use one of ${Object.keys(failureCodes).join(', ')}.`);
    }
    const failed = this.#failures.get(place) ?? 0;
    if (failed >= command.times) return;
    this.#failures.set(place, failed + 1);
    const code = command.code as keyof typeof failureCodes;
    const status = failureCodes[code];
    throw new ModelFailure(code, `Simulated failure ${code}, as the script asked.`, status === undefined ? {} : { status });
  }

  /** Ends the turn: with counts, or with the reason why there was nothing to do. */
  async #conclude(plan: ScriptPlan, step: ScriptStep | undefined, out: WordStream): Promise<void> {
    const missing = step?.some((command) => command.kind === 'last-task') ?? false;
    if (missing) await out.words('text', 'There is no background command or job whose id I could use, so the script ends here.\n');
    await out.words('text', summaryOf(plan));
    if (out.textChars === 0 && !out.cut) await out.words('text', 'The script is done; it called no tool.');
  }
}

async function waitSlowly(ms: number, out: WordStream): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    await out.pause(Math.min(100, left));
    await out.delta('reasoning', '. ');
  }
}

async function repeat(command: Extract<ScriptedCommand, { kind: 'repeat' }>, out: WordStream): Promise<void> {
  const deltas = command.words.map((word) => `${word} `);
  for (let i = 0; i < command.count && !out.cut; i += 1) await out.delta('text', deltas[i % deltas.length] ?? '');
}

function callsOf(step: ScriptStep, { messages, tools }: Pick<ModelRequest, 'messages' | 'tools'>): ToolCallRequest[] {
  const used = usedCallIds(messages);
  const calls: ToolCallRequest[] = [];
  for (const command of step) {
    if (command.kind !== 'tool' && command.kind !== 'last-task') continue;
    const args = command.kind === 'tool' ? fittingArgs(command.name, command.args, tools) : lastTaskArgs(command, messages);
    if (args === undefined) continue;
    let n = used.size + 1;
    while (used.has(`scripted_${n}`)) n += 1;
    used.add(`scripted_${n}`);
    calls.push({ callId: `scripted_${n}`, name: command.name, arguments: JSON.stringify(args) });
  }
  return calls;
}

/** `undefined` when there is nothing that the command could mean. */
function lastTaskArgs(
  { name, args }: Extract<ScriptedCommand, { kind: 'last-task' }>,
  messages: readonly ModelMessage[],
): Readonly<Record<string, unknown>> | undefined {
  const isAgent = name === 'subagent_output' || name === 'subagent_kill';
  const id = isAgent ? lastJobId(messages) : lastTaskId(messages);
  if (id === undefined) return undefined;
  return { [isAgent ? 'job_id' : 'task_id']: id, ...args };
}

/** Four characters count as one token. */
function finishOf(request: ModelRequest, out: WordStream, toolCalls: ToolCallRequest[]): ModelFinish {
  const input = request.system.length + request.messages.reduce((sum, message) => sum + charsOf(message), 0);
  const calls = toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return {
    reason: out.cut ? 'length' : toolCalls.length > 0 ? 'tool-calls' : 'stop',
    toolCalls,
    usage: {
      inputTokens: Math.ceil(input / 4),
      outputTokens: Math.ceil((out.textChars + out.reasoningChars + calls) / 4),
      cacheReadTokens: 0,
      reasoningTokens: Math.ceil(out.reasoningChars / 4),
    },
    model: 'scripted',
  };
}
