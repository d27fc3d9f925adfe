/** A session of a load, and its prompts. */
import { monotonicMs } from '../../test/support/monotonic.ts';
import type { LoadMeter } from './load-meter.ts';
import type { Target } from './targets.ts';
import type { Workspace } from './turn-work.ts';

export class LoadSession {
  readonly target: Target;
  readonly id: string;
  readonly workspace: Workspace;
  /** When the prompts without an answer were to be sent, in their order. */
  readonly asked: number[] = [];
  /** Deltas of the running turn so far. */
  tokens = 0;
  /** The last turn, where the agent itself cannot let one wait for another. */
  #last: Promise<void> | undefined;

  /** @param queues whether the agent runs the prompts of a session one after another; else they wait here */
  constructor(target: Target, id: string, workspace: Workspace, queues: boolean) {
    this.target = target;
    this.id = id;
    this.workspace = workspace;
    if (!queues) this.#last = Promise.resolve();
  }

  /** Sends the next prompt, which was to be sent at `askedAt`; fulfils with its answer. */
  turn(meter: LoadMeter, load: { readonly tokens: number; readonly delayMs: number }, askedAt = monotonicMs()): Promise<void> {
    this.asked.push(askedAt);
    if (this.#last === undefined) return this.#run(meter, load, askedAt);
    this.#last = this.#last.then(() => this.#run(meter, load, askedAt));
    return this.#last;
  }

  async #run(meter: LoadMeter, load: { readonly tokens: number; readonly delayMs: number }, askedAt: number): Promise<void> {
    const reason = await this.target.agent.prompt(this.id, this.workspace.nextTurn(load.delayMs));
    meter.answered(this, { askedAt, at: monotonicMs(), reason, tokens: load.tokens });
    this.asked.shift();
  }
}
