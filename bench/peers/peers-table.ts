/** The rows of the comparison as lines: one for an agent at a number of sessions, with both loads. */
import { median, withSpread } from '../load/statistics.ts';
import type { PeerRow } from '../run.ts';
import { exitLimitMs } from './running-agent.ts';

const columns = [
  { head: 'agent', width: 20 },
  { head: 'N', width: 4 },
  { head: 'initialize', width: 12 },
  { head: 'new p50/99', width: 12 },
  { head: 'PSS MB (processes)', width: 24 },
  { head: 'cold', width: 6 },
  { head: 'D=0 ms', width: 26 },
  { head: 'us/token', width: 24 },
  { head: 'D=5 ms', width: 26 },
  { head: 'us/token', width: 24 },
  { head: '1st p50/99', width: 17 },
  { head: 'cancel', width: 9 },
  { head: 'exit', width: 6 },
  { head: 'KB (+own)', width: 12 },
] as const;

export function peersHead(): string {
  return line(columns.map(({ head }) => head));
}

export function peersLine([fast, paced]: readonly PeerRow[]): string {
  if (fast === undefined || paced === undefined) return '';
  const { toOurs, pssMb, newSessionMs, cancelMs, exitMs, toModel } = paced;
  return line([
    fast.agent,
    String(fast.sessions),
    `${median(fast.initializeMs).toFixed(0)}${times(toOurs.initialize)}`,
    `${newSessionMs.p50.toFixed(1)}/${newSessionMs.p99.toFixed(0)}`,
    `${[pssMb.idle, pssMb.open, pssMb.after].map((mb) => mb.toFixed(0)).join('>')}${times(toOurs.memory)} (${paced.processes})`,
    fast.coldMs.toFixed(0),
    `${withSpread(fast.totalMs, 0)}${times(fast.toOurs.total)}`,
    `${withSpread(fast.cpuUsPerToken, 0)}${times(fast.toOurs.cpu)}`,
    `${withSpread(paced.totalMs, 0)}${times(paced.toOurs.total)}`,
    `${withSpread(paced.cpuUsPerToken, 0)}${times(paced.toOurs.cpu)}`,
    `${paced.firstTokenMs.p50.toFixed(0)}/${paced.firstTokenMs.p99.toFixed(0)}${times(paced.toOurs.firstToken)}`,
    cancelMs === undefined ? '–' : `${cancelMs.p50.toFixed(0)}/${cancelMs.max.toFixed(0)}`,
    exitMs >= exitLimitMs ? `>${exitLimitMs / 1000} s` : exitMs.toFixed(0),
    toModel === undefined ? '' : `${toModel.kbPerPrompt.toFixed(0)} (+${toModel.ownPerPrompt.toFixed(1)})`,
  ]);
}

function times(ratio: number): string {
  return ` ×${ratio.toFixed(ratio < 10 ? 2 : 0)}`;
}

function line(cells: readonly string[]): string {
  const padded = cells.map((cell, index) => (index === 0 ? cell.padEnd(columns[0].width) : cell.padStart(columns[index]?.width ?? 0)));
  return `  ${padded.join(' ')}`;
}
