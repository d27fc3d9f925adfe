/**
 * Asks the model what a conversation is about, in a few words: one small call outside of any turn, that nobody waits for.
 *
 * It goes behind every other call at the provider, carries no tools, is not thought about and never tried again. Whatever
 * goes wrong with it, the session keeps the title that it has.
 */
import { sessionTitle } from '../../shared/log/session-title.ts';
import { pricesAt } from '../../shared/prices/price-hours.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import { sliceWhole } from '../display/title-line.ts';
import type { ModelEvent, ModelFinish, ModelRequest } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { TurnLimits } from './budget.ts';
import { costOf } from './cost.ts';
import { slotReport } from './model-place.ts';
import { abandoned, settleOrAbandon } from './settle-or-abandon.ts';

export interface TitledTurn {
  readonly prompt: string;
  /** The last thing that was answered; absent where nothing was. */
  readonly answer?: string | undefined;
}

export interface TitleAnswer {
  /** Clean and short; absent where the model gave nothing of use. */
  readonly title?: string;
  /** As the provider counted it; absent where it counts nothing. */
  readonly usage?: SubagentUsage;
}

/** From the first wish for a place at the provider to the end of the answer. */
const timeLimitMs = 20_000;
const mostOutputTokens = 64;
/** Characters of the prompt and of the answer that the model is shown. */
const shownOfPrompt = 2000;
const shownOfAnswer = 1000;
const mostAnswerChars = 1000;
const lowestPriority = -100;
const serverLimits = { maxSteps: 0, maxToolCalls: 0, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0 };

const system = 'You name conversations. You answer with the name alone: at most six words on one line, no quotation marks, no full stop.';

/** `undefined` when nothing was asked, or no answer came. Never rejects. */
export async function askForTitle(context: AgentContext, turn: TitledTurn, signal: AbortSignal): Promise<TitleAnswer | undefined> {
  if (isSpent(context)) return undefined;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeLimitMs)]);
  try {
    const place = await context.modelSlots.acquire(lowestPriority, limited);
    if (place === undefined) return undefined;
    const startedAt = context.wallClock();
    let text = '';
    const sink = (event: ModelEvent): void => {
      if (event.type === 'text' && text.length < mostAnswerChars) text += event.text;
    };
    const answer = context.model.stream(titleRequest(turn), sink, { signal: limited, whenWritable: () => undefined });
    const settled = await settleOrAbandon(answer, limited, context.sleep).catch(asError);
    place.release(settled === abandoned ? { outcome: 'other' } : slotReport(settled));
    return settled instanceof Error || settled === abandoned ? undefined : answerOf(context, text, settled, startedAt);
  } catch {
    return undefined; // No place, or a fault of the adapter: a title is worth no more trouble.
  }
}

/** Whether a budget of the whole session has nothing left: what is outside of turns counts in it, too. */
function isSpent({ options, settings, model, ledger, wallClock }: AgentContext): boolean {
  if (options.budget === undefined) return false;
  const prices = () => model.prices ?? settings.prices;
  const usage = { steps: 0, toolCalls: 0, spentTokens: 0, costUsd: 0, elapsedMs: 0 };
  return (
    new TurnLimits({ server: serverLimits, turn: undefined, session: options.budget, prices, usage, ledger, wallClock }).spent() !==
    undefined
  );
}

function titleRequest({ prompt, answer = '' }: TitledTurn): ModelRequest {
  const asked = `What was asked:\n${sliceWhole(prompt, shownOfPrompt)}`;
  const answered = answer === '' ? '' : `\n\nWhat was answered:\n${sliceWhole(answer, shownOfAnswer)}`;
  const text = `${asked}${answered}\n\nName this conversation, in the language of what was asked.`;
  return { system, messages: [{ role: 'user', text }], tools: [], maxOutputTokens: mostOutputTokens, thinking: 'off' };
}

function answerOf({ model, settings, wallClock }: AgentContext, text: string, finish: ModelFinish, startedAt: number): TitleAnswer {
  const title = finish.reason === 'refusal' ? undefined : cleanTitle(text);
  const prices = model.prices ?? settings.prices;
  const { usage } = finish;
  if (usage === undefined) return title === undefined ? {} : { title };
  const cost = prices === undefined ? {} : { costUsd: costOf(pricesAt(prices, startedAt, wallClock()), usage) };
  return { ...(title === undefined ? {} : { title }), usage: { ...usage, ...cost } };
}

/** Models like to put a title into marks, and to say that it is one. */
function cleanTitle(text: string): string | undefined {
  const line = sessionTitle(text)
    ?.replace(/^(?:#+\s*|\**(?:title|name)\**\s*:\s*)/i, '')
    .replace(/^["'“”„«»*_`\s]+|["'“”„«»*_`.\s]+$/gu, '');
  return line === undefined || line === '' ? undefined : line;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('The model adapter failed.', { cause: error });
}
