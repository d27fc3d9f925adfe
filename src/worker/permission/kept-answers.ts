/**
 * The answers of a session that outlive their call: those of its workspace, and those that could not be kept there and hold for
 * the session alone, which its log remembers.
 */
import type { EventData } from '../../shared/events.ts';
import type { LastingAnswer } from '../../shared/permission/grants-file.ts';
import { askOnce } from './ask-once.ts';
import { type LastingGrants, noAnswers } from './workspace-grants.ts';

const longestWaitMs = 2000;

type Outcome = EventData['permission/decided']['outcome'];
export type KeptRejection = { readonly outcome: Extract<Outcome, 'reject-always' | 'reject-session'>; readonly grant: string };

export type KeptAllowance = { readonly outcome: Extract<Outcome, 'allow-always' | 'allow-session'>; readonly grant: string };

export class KeptAnswers {
  readonly #lasting: LastingGrants | undefined;
  readonly #allowed = new Set<string>();
  readonly #rejected = new Set<string>();

  /** @param lasting absent for work that heeds the answers about no workspace */
  constructor(lasting: LastingGrants | undefined) {
    this.#lasting = lasting;
  }

  /** Takes in a decision of the log. What belongs to the workspace is not learnt here: it may have been taken back since. */
  learn({ outcome, grant }: EventData['permission/decided']): void {
    if (grant === undefined) return;
    if (outcome === 'allow-session') this.#allowed.add(grant);
    else if (outcome === 'reject-session') this.#rejected.add(grant);
  }

  get hasRejections(): boolean {
    return this.#rejected.size > 0 || this.#current.rejected.size > 0;
  }

  /** The first of these keys that was rejected. */
  rejectionOf(keys: readonly string[]): KeptRejection | undefined {
    const { rejected } = this.#current;
    const grant = keys.find((key) => rejected.has(key) || this.#rejected.has(key));
    if (grant === undefined) return undefined;
    return { outcome: rejected.has(grant) ? 'reject-always' : 'reject-session', grant };
  }

  allowanceOf(key: string): KeptAllowance['outcome'] | undefined {
    return this.allowanceOfAny([key])?.outcome;
  }

  /** The first of these keys that was allowed. */
  allowanceOfAny(keys: readonly string[]): KeptAllowance | undefined {
    const { allowed } = this.#current;
    const grant = keys.find((key) => this.#allowed.has(key) || allowed.has(key));
    if (grant === undefined) return undefined;
    return { outcome: this.#allowed.has(grant) ? 'allow-session' : 'allow-always', grant };
  }

  /**
   * Keeps an answer and says how long it is known to hold. Never rejects; waits neither for a slow disk nor beyond `signal`, since the
   * decision must be on record before its turn ends.
   */
  async keep(answer: LastingAnswer, key: string, signal: AbortSignal): Promise<Outcome> {
    const added = await askOnce(async () => await this.#lasting?.add(answer, key), { signal, timeoutMs: longestWaitMs });
    if (added.kind === 'answered' && added.answer === true) return answer === 'allow' ? 'allow-always' : 'reject-always';
    (answer === 'allow' ? this.#allowed : this.#rejected).add(key);
    return answer === 'allow' ? 'allow-session' : 'reject-session';
  }

  get #current() {
    return this.#lasting?.current() ?? noAnswers;
  }
}
