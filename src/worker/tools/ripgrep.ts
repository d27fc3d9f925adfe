/**
 * Runs ripgrep through the broker for `glob` and `grep`: argv only, no configuration file, no preprocessor, no link followed.
 */
import { randomUUID } from 'node:crypto';
import type { RunResult } from '../../shared/broker-protocol.ts';
import { aborted, failed } from './outcome.ts';
import type { SearchRoot } from './search-root.ts';
import type { ToolContext, ToolOutcome } from './tool.ts';

const searchTimeoutMs = 30_000;

export type SearchRun = { readonly ok: true; readonly result: RunResult } | { readonly ok: false; readonly outcome: ToolOutcome };

/** Runs ripgrep in the root's directory. Ends soon after the call's signal aborts or at 30 s, with what was found so far. */
export async function runRipgrep(
  context: ToolContext,
  root: SearchRoot,
  options: { readonly ripgrepPath: string; readonly args: readonly string[]; readonly keepBytes: number },
): Promise<SearchRun> {
  const { broker, sessionId: owner, signal } = context;
  if (signal.aborted) {
    return { ok: false, outcome: aborted() };
  }
  const runId = randomUUID();
  const cancel = () => {
    broker.cancelRun(owner, runId).catch(() => {
      // The run itself reports a broker that is gone.
    });
  };
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const result = await broker.run({
      owner,
      runId,
      command: options.ripgrepPath,
      args: ['--no-config', '--no-follow', ...options.args],
      cwd: root.directory,
      keepBytes: options.keepBytes,
      timeoutMs: searchTimeoutMs,
    });
    return settled(result, signal);
  } catch {
    return { ok: false, outcome: failed('BROKER_UNAVAILABLE', 'The search could not be started: commands cannot be run at the moment.') };
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function settled(result: RunResult, signal: AbortSignal): SearchRun {
  if (signal.aborted || result.cancelled) {
    return { ok: false, outcome: aborted() };
  }
  if (result.spawnError !== undefined) {
    const text = `ripgrep could not be started (${result.spawnError}). Use bash to search instead.`;
    return { ok: false, outcome: failed('RIPGREP_UNAVAILABLE', text) };
  }
  return { ok: true, result };
}

/** The first lines of what ripgrep complained about, bounded. */
export function complaint(result: RunResult): string {
  return result.stderr.text.replace(/^rg: /, '').trim().slice(0, 500);
}
