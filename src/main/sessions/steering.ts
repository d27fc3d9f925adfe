/**
 * A message that a person sends while a turn runs: it goes into that turn, or begins one of its own, or is refused; one of these,
 * once, whatever ends at the same moment.
 */
import { ServerError } from '../../shared/errors.ts';
import type { PromptBlock } from '../../shared/events.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { PendingPrompt, PromptResult } from './pending-prompt.ts';

export interface SteeredMessage {
  readonly content: readonly PromptBlock[];
  /** Under which it is logged. */
  readonly messageId: string;
}

export type Steered =
  /** The turn has it, and its next step will take it. */
  | { readonly outcome: 'injected' }
  /** Nothing ran: a turn began with it, and ended so. */
  | { readonly outcome: 'started'; readonly result: PromptResult }
  /** The session has nothing of it. */
  | { readonly outcome: 'refused'; readonly reason: SteerRefusal };

/**
 * `full`: too many messages wait for the next step. `cancelled`: so was the turn that it was sent into. `not-begun`: that turn failed
 * before it began, and without it the message may say something else.
 */
export type SteerRefusal = 'full' | 'cancelled' | 'not-begun';

export interface SteeringParts {
  /** The prompt that runs, or else the next one. */
  readonly front: () => PendingPrompt | undefined;
  readonly attached: () => Pick<AttachedSession, 'call'> | undefined;
  /** Starts a turn; fulfils with its end. */
  readonly start: (message: SteeredMessage) => Promise<PromptResult>;
}

/**
 * Follows the prompts of a session until one takes the message or none is left. A turn that ends while the message is on its way is
 * no refusal: the message then goes into the next one.
 *
 * @throws ServerError THREAD_LOST when the thread ended before it could say whether it took the message; INVALID_PARAMS for a
 * `messageId` that the session knows; REQUEST_CANCELLED; what `start` throws
 */
export async function steer(message: SteeredMessage, signal: AbortSignal, parts: SteeringParts): Promise<Steered> {
  for (;;) {
    if (signal.aborted) throw new ServerError('REQUEST_CANCELLED', 'The request was cancelled before the message was taken.');
    const prompt = parts.front();
    if (prompt === undefined) return { outcome: 'started', result: await parts.start(message) };
    const taken = await offer(message, prompt, { signal, attached: parts.attached });
    if (taken !== 'next') return taken;
  }
}

async function offer(
  { content, messageId }: SteeredMessage,
  prompt: PendingPrompt,
  { signal, attached }: Pick<SteeringParts, 'attached'> & { readonly signal: AbortSignal },
): Promise<Steered | 'next'> {
  await Promise.race([prompt.whenBegun(), aborted(signal)]);
  if (prompt.cancelRequested) return refused('cancelled');
  const { requestId } = prompt;
  if (requestId === undefined) return signal.aborted ? 'next' : refused('not-begun');
  if (prompt.settled) return 'next';
  const outcome = await attached()?.call((api) => api.steer(requestId, content, messageId));
  if (outcome === 'injected') return { outcome };
  if (outcome === 'full') return refused('full');
  if (outcome === undefined) {
    throw new ServerError(
      'THREAD_LOST',
      'The thread ended before it could say whether it has taken the message. Send it again with the same messageId.',
    );
  }
  // The end of that turn is on its way.
  await prompt.whenSettled();
  return prompt.cancelRequested ? refused('cancelled') : 'next';
}

function refused(reason: SteerRefusal): Steered {
  return { outcome: 'refused', reason };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
