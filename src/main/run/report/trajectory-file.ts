/**
 * Writes a run's trajectories for training: a JSON line for each attempt, with the reward that its check gave.
 */
import { readToolSchemas } from '../../../shared/log/tool-schemas.ts';
import type { TokenUsage } from '../../../shared/events.ts';
import type { JobResult } from '../job-result.ts';
import { FileSink } from './file-sink.ts';
import { readSessionLog } from '../../transcript/read-log.ts';
import type { RunExporter, RunFacts } from './run-exporter.ts';
import { type ChatMessage, Trajectory } from './trajectory.ts';

/** One line of the file. */
export interface TrajectoryLine {
  readonly version: 1;
  readonly key: string;
  readonly id: string;
  readonly repeat: number;
  readonly seed: number;
  readonly status: JobResult['status'];
  /** 1 when the check passed, 0 when it ran and did not, null when nothing was checked. */
  readonly reward: 1 | 0 | null;
  /** Whether `messages` is all that the model saw and said; `false` without a session log, or where it could not be read whole. */
  readonly complete: boolean;
  /** How often the model saw a summary or a cut in place of messages that stand here whole. */
  readonly compactions: number;
  /** Whether system text or tools changed on the way; the last ones are given. */
  readonly header_changed: boolean;
  readonly messages: readonly ChatMessage[];
  /** In the form of OpenAI's API. Names only where the state directory does not hold the schemas. */
  readonly tools: readonly { readonly type: 'function'; readonly function: ToolFunction }[];
  readonly usage: TrajectoryUsage | null;
  readonly model: string | null;
  readonly stop_reason: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ToolFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: object;
}

/** `prompt_tokens` has cache reads in it, `completion_tokens` reasoning, as providers count. */
export interface TrajectoryTokens {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
}

export interface TrajectoryUsage extends TrajectoryTokens {
  readonly steps: number;
  readonly tool_calls: number;
  /** Estimate of what was used and not reported, beside the numbers above; absent when everything was. */
  readonly guessed_tokens?: number;
  /** Of subagents, beside the numbers above; absent without any. */
  readonly subagents?: TrajectoryTokens;
}

export class TrajectoryFile implements RunExporter {
  readonly name = 'trajectories';
  readonly path: string;
  #sink: FileSink | undefined;
  #promptsOf: RunFacts['promptsOf'] = () => undefined;

  constructor(path: string) {
    this.path = path;
  }

  async open(facts: RunFacts): Promise<void> {
    this.#promptsOf = facts.promptsOf;
    this.#sink = await FileSink.open(this.path);
  }

  async add(result: JobResult): Promise<void> {
    const line = await trajectoryLine(result, this.#promptsOf(result) ?? []);
    await this.#sink?.write(`${JSON.stringify(line)}\n`);
  }

  async close(): Promise<void> {
    await this.#sink?.close();
  }

  async abandon(): Promise<void> {
    await this.#sink?.abandon();
  }
}

/** @param prompts used where there is no log */
export async function trajectoryLine(result: JobResult, prompts: readonly string[]): Promise<TrajectoryLine> {
  const { key, id, repeat, seed, status, labels } = result;
  const seen = (await seenInLog(result)) ?? fromResult(result, prompts);
  return {
    version: 1,
    key,
    id,
    repeat,
    seed,
    status,
    reward: rewardOf(result),
    ...seen,
    usage: usageOf(result),
    stop_reason: result.stopReason ?? null,
    labels,
  };
}

/** What a model saw and said. */
export type Seen = Pick<TrajectoryLine, 'complete' | 'compactions' | 'header_changed' | 'messages' | 'tools' | 'model'>;

/** @returns undefined where there is no log, or nothing in it */
export async function seenInLog({ logPath, model }: Pick<JobResult, 'logPath' | 'model'>): Promise<Seen | undefined> {
  if (logPath === undefined) return undefined;
  const trajectory = new Trajectory();
  let strange = 0;
  const { damaged, problem } = await readSessionLog(logPath, {
    onHeader: () => undefined,
    onEvent: (event) => {
      try {
        trajectory.onEvent(event);
      } catch {
        strange += 1; // Data that is not what its type says: the line is then not complete.
      }
    },
  });
  const { messages, answered } = trajectory.messages();
  if (messages.length === 0) return undefined;
  return {
    complete: problem === undefined && damaged + strange === 0 && answered && !trajectory.truncated,
    compactions: trajectory.compactions,
    header_changed: trajectory.headerChanged,
    messages,
    tools: toolsOf(trajectory, logPath).map((tool) => ({ type: 'function', function: tool })),
    model: trajectory.model ?? model ?? null,
  };
}

function toolsOf({ tools, toolsHash }: Trajectory, logPath: string): readonly ToolFunction[] {
  const schemas = toolsHash === undefined ? undefined : readToolSchemas(logPath, toolsHash);
  return schemas ?? tools.map((name) => ({ name }));
}

function fromResult({ text, model }: JobResult, prompts: readonly string[]): Seen {
  const asked = prompts.map((content): ChatMessage => ({ role: 'user', content }));
  const said: ChatMessage[] = text === '' ? [] : [{ role: 'assistant', content: text }];
  return { complete: false, compactions: 0, header_changed: false, messages: [...asked, ...said], tools: [], model: model ?? null };
}

function rewardOf({ status, check }: JobResult): 1 | 0 | null {
  if (status === 'passed') return 1;
  return status === 'failed' || (status === 'budget' && check !== undefined) ? 0 : null;
}

function usageOf({ usage }: JobResult): TrajectoryUsage | null {
  if (usage === undefined) return null;
  const { guessedTokens, subagents } = usage;
  return {
    ...trajectoryTokens(usage),
    steps: usage.steps,
    tool_calls: usage.toolCalls,
    ...(guessedTokens === undefined ? {} : { guessed_tokens: guessedTokens }),
    ...(subagents === undefined ? {} : { subagents: trajectoryTokens(subagents) }),
  };
}

export function trajectoryTokens(usage: TokenUsage): TrajectoryTokens {
  return {
    prompt_tokens: usage.inputTokens + usage.cacheReadTokens,
    completion_tokens: usage.outputTokens,
    cached_tokens: usage.cacheReadTokens,
    reasoning_tokens: usage.reasoningTokens,
  };
}
