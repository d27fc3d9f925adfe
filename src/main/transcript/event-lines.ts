/** What is one line in a transcript: waits, retries, decisions, subagents, ends of turns, changes of mode and history. */
import type { ContextUse, EventData, TurnEndReason } from '../../shared/events.ts';
import type { SubagentActivity } from '../../shared/subagent-protocol.ts';
import { costText, countText, durationText, percentText } from '../run/view/figures.ts';
import { excerptOf, visibleLine } from '../run/view/visible-text.ts';
import { type Html, html, preformatted } from './html.ts';

const longestText = 300;
const longestSummary = 32 * 1024;

export function retryLine(data: EventData['llm/retry']): Html {
  const when = `attempt ${data.attempt} of ${data.maxAttempts} failed, next in ${durationText(data.delayMs)}`;
  return html`model call retried: ${when} — ${visibleLine(data.code, 60)}: ${visibleLine(data.message, longestText)}`;
}

export function waitLine(data: EventData['llm/wait']): Html {
  return html`waited ${durationText(data.waitedMs)} for a place at the model, ${countText(data.position)} before it`;
}

export function instructionsLine({ files, given }: EventData['instructions/read']): Html {
  const names = files.map(({ path, clipped }) => `${path}${clipped === true ? ' (cut)' : ''}`).join(', ');
  const where = given === 'system' ? 'in the system text' : 'with what has changed in the conversation';
  return html`instruction files, ${where}: ${visibleLine(names === '' ? 'none' : names, longestText)}`;
}

export function mcpLine({ name, state, tools = [], leftOut = [], error }: EventData['mcp/status']): Html {
  const count =
    state === 'connected'
      ? `, ${countText(tools.length)} tools${leftOut.length === 0 ? '' : `, ${countText(leftOut.length)} left out`}`
      : '';
  const why = error === undefined ? undefined : html`: ${visibleLine(error, longestText)}`;
  return html`MCP server <b>${visibleLine(name, 120)}</b>: ${state}${count}${why}`;
}

export function askedLine(data: EventData['permission/asked']): Html {
  return html`permission asked: ${visibleLine(data.title, longestText)}`;
}

export function decidedLine(data: EventData['permission/decided']): Html {
  const rule = data.rule === undefined ? undefined : html`, rule <b>${visibleLine(data.rule, 120)}</b>`;
  const grant = data.grant === undefined ? undefined : html`, for <code>${visibleLine(data.grant, longestText)}</code>`;
  return html`permission: <b>${visibleLine(data.outcome, 40)}</b> by ${visibleLine(data.by, 40)}${rule}${grant}`;
}

export function choiceLine({ model, thoughtLevel, showThoughts }: EventData['options/change']): Html {
  const words = [
    ...(model === undefined ? [] : [`model: ${model}`]),
    ...(thoughtLevel === undefined ? [] : [`thinking: ${thoughtLevel}`]),
    ...(showThoughts === undefined ? [] : [`thoughts are ${showThoughts ? 'shown' : 'not shown'}`]),
  ];
  return html`${visibleLine(words.join(', '), 200)}`;
}

export function prunedLine(data: EventData['history/pruned']): Html {
  const results = html`${data.callIds.length} older results were cut to ${countText(data.keepChars)} characters for the model; they are whole here`;
  const images = data.messageIds === undefined ? undefined : html`; the images of ${data.messageIds.length} older messages were left out`;
  return html`${results}${images}`;
}

export function rewoundLine({ kind, turns, restored, removed, left }: EventData['history/rewound']): Html {
  const what = kind === 'redo' ? 'brought back' : 'undone';
  const files = `${countText(restored)} files restored, ${countText(removed)} removed, ${countText(left?.length ?? 0)} left`;
  return html`turns ${visibleLine(turns.join(', '), longestText)} ${what}: ${files}`;
}

/** What a command has done to files; `undefined` when that is nothing. */
export function observedLine({ changed, why }: EventData['workspace/observed']): Html | undefined {
  if (changed === 0 && why === undefined) return undefined;
  return html`files changed: ${countText(changed)}${why === undefined ? undefined : html` (${visibleLine(why, longestText)})`}`;
}

export function subagentStartLine(data: EventData['subagent/start']): Html {
  const kind = data.background ? 'background subagent' : 'subagent';
  const task = data.description === undefined ? undefined : html`: ${visibleLine(data.description, longestText)}`;
  return html`${kind} ${runText(data.runId)} started at ${visibleLine(data.provider, 60)} in <code>${visibleLine(data.cwd, longestText)}</code>${task}`;
}

export function subagentEndLine(data: EventData['subagent/end']): Html {
  const { usage } = data;
  const parts = [
    html`subagent ${runText(data.runId)} ended: <b>${visibleLine(data.stopReason, 40)}</b> after ${durationText(data.durationMs)}`,
    usage === undefined ? undefined : `, ${usageText(usage)}`,
    usage?.costUsd === undefined ? undefined : `, ${costText(usage.costUsd)}`,
    data.diagnostic === undefined ? undefined : html`: ${visibleLine(data.diagnostic, longestText)}`,
    data.unlogged === undefined ? undefined : `; ${countText(data.unlogged)} more doings were not logged`,
    data.logPath === undefined ? undefined : html`; log ${visibleLine(data.logPath, longestText)}`,
    data.output === undefined || data.output === '' ? undefined : textDetails('what it gave', data.output),
  ];
  return html`${parts}`;
}

/** Without what makes it unique over all sessions. */
function runText(runId: string): string {
  return visibleLine(runId.replace(/:[0-9a-f-]{36}$/, ''), 60);
}

/** What a child has done, in a line; `undefined` for what is under way, and for its text, which its result holds. */
export function activityLine(activity: SubagentActivity): Html | undefined {
  switch (activity.kind) {
    case 'tool':
      if (activity.status !== 'completed' && activity.status !== 'failed') return undefined;
      return html`↳ ${visibleLine(activity.title, longestText)} (${activity.status})`;
    case 'plan':
      return html`↳ plan of ${activity.entries.length} steps`;
    case 'image':
      return html`↳ image ${visibleLine(activity.path, longestText)}`;
    case 'text':
    case 'usage':
    default:
      return undefined;
  }
}

/** A text that is shown when asked for. */
export function textDetails(summary: string, text: string): Html {
  return html`<details><summary>${summary}</summary>${preformatted(excerptOf(text, longestSummary), 'out')}</details>`;
}

/** @param context how full the model's window was at the end */
export function turnEndLine(
  { reason, usage, structured }: EventData['turn/end'],
  { elapsedMs, context }: { readonly elapsedMs: number; readonly context: ContextUse | undefined },
): Html {
  const children = usage.subagents;
  const parts = [
    html`turn ended: <b>${reasonText(reason)}</b> — ${durationText(usage.elapsedMs > 0 ? usage.elapsedMs : elapsedMs)}`,
    `, ${countText(usage.steps)} steps, ${countText(usage.toolCalls)} tool calls, ${usageText(usage)}`,
    usage.guessedTokens === undefined ? undefined : `, ≈ ${countText(usage.guessedTokens)} tokens that were not reported`,
    children === undefined ? undefined : `; subagents ${usageText(children)}`,
    usage.costUsd === undefined ? undefined : `; ${costText(usage.costUsd)}`,
    context === undefined ? undefined : `; ${contextText(context)}`,
    structured === undefined ? undefined : textDetails('structured answer', JSON.stringify(structured, undefined, 1)),
  ];
  return html`${parts}`;
}

/** `window 12% of 128,000`, with what the whole session has cost. */
function contextText({ used, size, costUsd }: ContextUse): string {
  const cost = costUsd === undefined ? '' : `, session ${costText(costUsd)}`;
  return `window ${percentText(size === 0 ? 0 : Math.round((used / size) * 1000) / 1000)} of ${countText(size)}${cost}`;
}

interface Tokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly reasoningTokens: number;
}

/** `in 1,234 (1,000 cached), out 88 (40 reasoning)`. */
export function usageText(usage: Tokens): string {
  const cached = usage.cacheReadTokens === 0 ? '' : ` (${countText(usage.cacheReadTokens)} cached)`;
  const reasoning = usage.reasoningTokens === 0 ? '' : ` (${countText(usage.reasoningTokens)} reasoning)`;
  return `in ${countText(usage.inputTokens + usage.cacheReadTokens)}${cached}, out ${countText(usage.outputTokens)}${reasoning}`;
}

function reasonText(reason: TurnEndReason): string {
  switch (reason.kind) {
    case 'max-turn-requests':
      return `${reason.kind}: the budget of ${reason.budget}${reason.scope === undefined ? '' : ` of the ${reason.scope}`} is spent`;
    case 'error':
      return `error ${visibleLine(reason.code, 60)}: ${visibleLine(reason.message, longestText)}`;
    case 'completed':
    case 'max-tokens':
    case 'refusal':
    case 'cancelled':
    case 'disposed':
    case 'interrupted':
    default:
      return reason.kind;
  }
}
