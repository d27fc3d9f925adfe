/**
 * Takes a session back to an earlier prompt, between its prompts: none runs meanwhile, and those that come wait.
 */
import { ServerError } from '../../shared/errors.ts';
import type { RewindOutcome, RewindRequest } from '../../shared/undo-protocol.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { PromptQueue } from './prompt-queue.ts';

export interface RewindingParts {
  readonly queue: Pick<PromptQueue, 'between'>;
  /** Holds the session's thread, and a slot where that takes one, while `work` runs. */
  readonly errand: (work: () => Promise<void>) => Promise<void>;
  readonly attach: () => Promise<AttachedSession>;
}

/**
 * Fulfils behind the update that tells the client.
 *
 * @throws ServerError SESSION_BUSY while a prompt has no answer; THREAD_LOST; what `attach` throws; as `SessionApi.rewind`
 */
export async function rewind(request: RewindRequest, { queue, errand, attach }: RewindingParts): Promise<RewindOutcome> {
  return await queue.between(async () => {
    let outcome: RewindOutcome | undefined;
    await errand(async () => {
      const attached = await attach();
      const made = await attached.call((api) => api.rewind(request));
      if (made === undefined) return;
      await attached.lane.batchTaken(made.afterBatch);
      ({ outcome } = made);
    });
    if (outcome !== undefined) return outcome;
    throw new ServerError('THREAD_LOST', 'The thread ended before the rewind was done. Ask again to complete it.');
  });
}
