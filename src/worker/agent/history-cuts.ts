/** Which of a history's units may be cut, replaced or left out: pure questions about a list of units. */
import type { ModelMessage } from '../model/model-adapter.ts';
import { type AnswerUnit, type HistoryUnit, messagesOf, unitChars, unitImages, type UserUnit } from './history-unit.ts';

/** Messages of turns before `turn` that have images. */
export function prunableImages(units: readonly HistoryUnit[], turn: number): string[] {
  const old = units.filter((unit): unit is UserUnit => unit.turn < turn && unitImages(unit).count > 0);
  return old.flatMap(({ messageId }) => messageId ?? []);
}

/** Calls whose result is longer than `minChars`, leaving out the last `keepAnswers` answers that made calls. */
export function prunableCalls(units: readonly HistoryUnit[], minChars: number, keepAnswers: number): string[] {
  const answers = units.filter((unit): unit is AnswerUnit => unit.kind === 'answer' && unit.results.size > 0);
  const old = answers.slice(0, Math.max(0, answers.length - keepAnswers));
  return old.flatMap((unit) => [...unit.results].filter(([, text]) => text.length > minChars).map(([callId]) => callId));
}

/** The oldest units, as far as a summary may replace them. */
export interface HistoryPrefix {
  readonly throughSeq: number;
  readonly messages: readonly ModelMessage[];
  readonly tokens: number;
}

/** The oldest whole units that leave about `keepTokens` of the newest, at least one; `0` leaves none. `undefined` when nothing new could be replaced. */
export function prefixOf(
  all: readonly HistoryUnit[],
  keepTokens: number,
  tokens: (chars: number, images: number) => number,
): HistoryPrefix | undefined {
  let cut = all.length;
  let kept = 0;
  while (cut > 0) {
    const unit = all[cut - 1];
    if (unit === undefined) break;
    kept += tokens(unitChars(unit), unitImages(unit).count);
    if (kept > keepTokens && (keepTokens === 0 || cut < all.length)) break;
    cut -= 1;
  }
  const units = all.slice(0, cut);
  const last = units.at(-1);
  if (last === undefined || last.turn < 0) return undefined;
  const chars = units.reduce((sum, unit) => sum + unitChars(unit), 0);
  const images = units.reduce((sum, unit) => sum + unitImages(unit).count, 0);
  return { throughSeq: last.lastSeq, messages: messagesOf(units), tokens: tokens(chars, images) };
}
