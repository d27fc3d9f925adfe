/** The tool cards that the client shows as open, so that a server's death leaves none of them spinning. */
import { OpenCards } from '../threads/open-cards.ts';
import { type LooseFrame, member } from './frames.ts';

export class ShownCards {
  readonly #open = new OpenCards();

  /** Takes a `session/update` that goes to the client. */
  note(frame: LooseFrame): void {
    const sessionId = member(frame.params, 'sessionId');
    const update = member(frame.params, 'update');
    const callId = member(update, 'toolCallId');
    if (typeof sessionId !== 'string' || typeof callId !== 'string') return;
    const status = member(update, 'status');
    const terminal = member(member(update, '_meta'), 'terminal_info') !== undefined;
    if (status === 'completed' || status === 'failed') this.#open.note({ sessionId, callId, open: false });
    else if (member(update, 'sessionUpdate') === 'tool_call')
      this.#open.note({ sessionId, callId, open: true, ...(terminal ? { terminal } : {}) });
  }

  /** Lines that end them; none of the session is open afterwards. */
  close(sessionId: string): string {
    return this.#open.close(sessionId, 'Outcome unknown: the server process ended during this call.').frames;
  }
}
