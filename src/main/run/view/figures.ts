/**
 * Figures as people read them: durations, counts, costs, quantiles. Pure, the same on screen and in the report.
 */
import type { JobUsage } from '../job-result.ts';

/** `0.42 s`, `12.3 s`, `4m 02s`, `2h 05m`, `3d 04h`. Less than nothing is shown as nothing. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${twoDigits(whole % 60)}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${twoDigits(minutes % 60)}m`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)}d ${twoDigits(hours % 24)}h`;
}

/** For a clock that moves on screen: whole seconds. */
export function elapsedText(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  return seconds < 60 ? `${seconds}s` : durationText(seconds * 1000);
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12,345`. */
export function countText(value: number): string {
  return grouped.format(value);
}

/** `987`, `12.3k`, `4.56M`: three figures. */
export function shortCount(value: number): string {
  for (const [size, suffix] of sizes) {
    if (value >= size * 0.9995) return `${threeFigures(value / size)}${suffix}`;
  }
  return String(Math.round(value));
}

const sizes: readonly (readonly [number, string])[] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

function threeFigures(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** What stands beside a usage's own numbers, for people: `≈ 1.2k guessed`, `subagents in 12.3k, out 456`. Only what there is. */
export function besideText({ guessedTokens = 0, subagents }: Pick<JobUsage, 'guessedTokens' | 'subagents'>): string[] {
  const input = subagents === undefined ? 0 : subagents.inputTokens + subagents.cacheReadTokens;
  const output = subagents?.outputTokens ?? 0;
  return [
    ...(guessedTokens === 0 ? [] : [`≈ ${shortCount(guessedTokens)} guessed`]),
    ...(input + output === 0 ? [] : [`subagents in ${shortCount(input)}, out ${shortCount(output)}`]),
  ];
}

/** Of an attempt's own calls, with `≈` where guesses are in it. */
export function tokensText(usage: JobUsage): string {
  return `${(usage.guessedTokens ?? 0) > 0 ? '≈ ' : ''}${shortCount(tokensOf(usage))}`;
}

/** Of an attempt's own calls, guesses included. */
export function tokensOf({ inputTokens, cacheReadTokens, outputTokens, guessedTokens = 0 }: JobUsage): number {
  return inputTokens + cacheReadTokens + outputTokens + guessedTokens;
}

/** `$0.0042`, `$1.23`, `$1,234`. */
export function costText(usd: number): string {
  if (usd >= 999.995) return `$${countText(usd)}`;
  return usd >= 0.995 || usd === 0 ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`;
}

/** `12.3%`, without a fraction where it says nothing. */
export function percentText(share: number): string {
  const percent = share * 100;
  return Number.isInteger(percent) ? `${percent}%` : `${percent.toFixed(1)}%`;
}

/** Nearest rank; `sorted` ascends. `undefined` of nothing. */
export function quantile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
