/**
 * Tells the model that it is in plan mode, and when that is over: as notices at the end of the history, so that what
 * providers have cached of its beginning stays good.
 *
 * What the model has been told is read from the log's events, live and replayed, so a session that was parked or revived
 * neither forgets nor repeats it; a summary or a refused turn that took the notice away has it told again.
 */
import type { EventData, LogEvent, PermissionMode } from '../../shared/events.ts';
import { planToolName } from '../../shared/tool-names.ts';

const begun = '[Plan mode is on:';
const over = '[Plan mode is over';

interface Told {
  readonly inPlan: boolean;
  readonly seq: number;
  readonly turn: number;
}

const nothing: Told = { inPlan: false, seq: -1, turn: 0 };

export class PlanNotices {
  readonly #hasTool: boolean;
  #told: Told = nothing;
  #before: Told = nothing;

  /** @param hasTool whether the session can put a plan to a person */
  constructor(hasTool: boolean) {
    this.#hasTool = hasTool;
  }

  observe(event: LogEvent): void {
    if (event.type === 'user/message') this.#observeMessage(event.seq, event.data);
    // The result of an approved plan says that the mode is another one.
    else if (event.type === 'tool/result' && event.data.meta?.['approvedMode'] !== undefined) this.#note(false, event.seq, event.data.turn);
    else if (event.type === 'history/compacted' && this.#told.seq <= event.data.throughSeq) this.#told = nothing;
    else if (event.type === 'history/rewound' && this.#told.seq >= event.data.base) this.#told = nothing;
    // The model never sees a refused turn again.
    else if (event.type === 'turn/end' && event.data.reason.kind === 'refusal' && this.#told.turn === event.data.turn)
      this.#told = this.#before;
  }

  /** What the model has to hear before the next step, if anything. */
  next(mode: PermissionMode): string | undefined {
    const inPlan = mode === 'plan';
    if (inPlan === this.#told.inPlan) return undefined;
    return inPlan ? planText(this.#hasTool) : overText(mode);
  }

  #observeMessage(seq: number, { source, content: [first], turn }: EventData['user/message']): void {
    if (source !== 'notice' || first?.type !== 'text') return;
    if (first.text.startsWith(begun)) this.#note(true, seq, turn);
    else if (first.text.startsWith(over)) this.#note(false, seq, turn);
  }

  #note(inPlan: boolean, seq: number, turn: number): void {
    if (this.#told.turn !== turn) this.#before = this.#told;
    this.#told = { inPlan, seq, turn };
  }
}

function planText(hasTool: boolean): string {
  const how = hasTool
    ? `When you know how you would do what the person wants, call ${planToolName} with the plan: the person approves it or asks for a better one.`
    : 'Give the plan as your answer.';
  return `${begun} read and search, but change nothing. Commands and changes of files are refused. ${how}]`;
}

function overText(mode: PermissionMode): string {
  const can = mode === 'read-only' ? 'Still nothing may be changed.' : 'Commands and changes of files are possible again.';
  return `${over}; the mode is now "${mode}". ${can}]`;
}
