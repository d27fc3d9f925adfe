/**
 * How a command ends: with its leader's exit, not with its pipes, since a descendant may hold those for hours.
 */
import type { ExitStatus, ProcessGroup } from './process-group.ts';
import type { StreamPump } from './stream-pump.ts';
import { within } from './within.ts';

/** After the leader's exit, what is left of the group may go on for as long as its output comes without this much pause. */
const quietMs = 200;
/** And never longer than this. */
const lingerMs = 2000;
/** TERM to KILL for what is left then. */
const leftoverGraceMs = 300;
/** For the last bytes in pipes whose writers are gone, or have left the group. */
const drainMs = 100;

/**
 * Fulfils once the group is proven gone and its pipes are closed. `undefined` instead of a status when it had to be
 * given up (stuck in the kernel). Leftovers of a command that has ended are ended too.
 */
export async function settleGroup(group: ProcessGroup, pumps: readonly StreamPump[]): Promise<ExitStatus | undefined> {
  const status = await Promise.race([group.exited, group.givenUp]);
  const drained = Promise.all(pumps.map((pump) => pump.ended)).then(() => undefined);
  await linger(
    group,
    pumps,
    Promise.all([drained, group.gone]).then(() => true as const),
  );
  await group.end(leftoverGraceMs);
  await within(drained, drainMs, undefined);
  for (const pump of pumps) pump.destroy();
  await drained;
  return status ?? undefined;
}

async function linger(group: ProcessGroup, pumps: readonly StreamPump[], over: Promise<true>): Promise<void> {
  const exitedAt = performance.now();
  while (!group.ending) {
    const lastActivity = Math.max(exitedAt, ...pumps.map((pump) => pump.lastActivity));
    const end = Math.min(lastActivity + quietMs, exitedAt + lingerMs);
    const wait = end - performance.now();
    if (wait <= 0 || (await within(over, Math.min(wait, quietMs / 4), false))) return;
  }
}
