/**
 * Why a server stops, and the one promise of it: the first cause wins, a second signal ends the process at once.
 */
import type { Diagnostics } from './diagnostics.ts';

export type StopCause =
  | { readonly kind: 'input-ended' }
  | { readonly kind: 'output-broken'; readonly reason: string }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'fault'; readonly error: unknown };

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface Stopped {
  readonly cause: Promise<StopCause>;
  because(cause: StopCause): void;
}

/**
 * Listens for signals and unexpected faults from now on.
 *
 * @param beforeHardExit runs synchronously before a second signal ends the process
 */
export function onceStopped(diagnostics: Diagnostics, beforeHardExit: () => void): Stopped {
  let settled = false;
  let resolve: (cause: StopCause) => void = () => undefined;
  const cause = new Promise<StopCause>((settle) => {
    resolve = settle;
  });
  const because = (reason: StopCause): void => {
    if (settled) return;
    settled = true;
    diagnostics.log('info', `stopping: ${reason.kind}`);
    resolve(reason);
  };
  let signalled = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (signalled) {
        beforeHardExit();
        process.exit(1);
      }
      signalled = true;
      because({ kind: 'signal', signal });
    });
  }
  const onFault = (error: unknown): void => {
    diagnostics.log('error', `unexpected fault: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    because({ kind: 'fault', error });
  };
  process.on('uncaughtException', onFault);
  process.on('unhandledRejection', onFault);
  return { cause, because };
}
