/**
 * What one run has to tell, until its owner has fetched it: bounded, the oldest activity goes first.
 */
import { NewsWait } from '../news-wait.ts';
import type { SubagentActivity, SubagentNews, SubagentQuestion, SubagentResult } from '../subagent-protocol.ts';

const maxEntries = 256;
const maxChars = 256 * 1024;
/** Text in small pieces is joined up to this, so that a stream of tokens does not push everything else out. */
const joinedChars = 4096;

interface Entry {
  readonly seq: number;
  readonly activity: SubagentActivity;
  readonly chars: number;
}

export class RunNews {
  readonly #questions = new Map<string, SubagentQuestion>();
  #entries: Entry[] = [];
  #chars = 0;
  #seq = 0;
  /** What has been given to the owner may not change any more. */
  #givenSeq = 0;
  #dropped = 0;
  #droppedSeq = 0;
  #result: SubagentResult | undefined;
  readonly #wake = new NewsWait();

  get result(): SubagentResult | undefined {
    return this.#result;
  }

  /** Tells of something that happened; nothing does after the end. */
  add(activity: SubagentActivity): void {
    if (this.#result !== undefined) return;
    const joined = this.#joined(activity);
    const chars = sizeOf(joined);
    this.#seq += 1;
    this.#entries.push({ seq: this.#seq, activity: joined, chars });
    this.#chars += chars;
    while (this.#entries.length > maxEntries || (this.#chars > maxChars && this.#entries.length > 1)) this.#dropOldest();
    this.#changed();
  }

  ask(question: SubagentQuestion): void {
    this.#questions.set(question.questionId, question);
    this.#seq += 1;
    this.#changed();
  }

  /** The question needs no answer any more. */
  withdraw(questionId: string): void {
    if (!this.#questions.delete(questionId)) return;
    this.#seq += 1;
    this.#changed();
  }

  /** The run is over. The first result stands. */
  end(result: SubagentResult): void {
    if (this.#result !== undefined) return;
    this.#questions.clear();
    this.#result = result;
    this.#seq += 1;
    this.#changed();
  }

  /** What came after `seq`; waits up to `waitMs` for some. What came before is forgotten. */
  async since(seq: number, waitMs: number): Promise<SubagentNews> {
    if (seq >= this.#seq && this.#result === undefined && waitMs > 0) await this.#wake.wait(waitMs);
    while ((this.#entries[0]?.seq ?? Number.POSITIVE_INFINITY) <= seq) this.#removeFirst();
    if (seq >= this.#droppedSeq) this.#dropped = 0;
    this.#givenSeq = this.#seq;
    return {
      seq: this.#seq,
      activities: this.#entries.map((entry) => entry.activity),
      dropped: this.#dropped,
      questions: [...this.#questions.values()],
      ...(this.#result === undefined ? {} : { result: this.#result }),
    };
  }

  /** Takes the last entry's text along, when that is text that nobody has read. */
  #joined(activity: SubagentActivity): SubagentActivity {
    const last = this.#entries.at(-1);
    if (activity.kind !== 'text' || last?.activity.kind !== 'text' || last.seq <= this.#givenSeq) return activity;
    if (last.chars + activity.text.length > joinedChars) return activity;
    this.#entries.pop();
    this.#chars -= last.chars;
    return { kind: 'text', text: last.activity.text + activity.text };
  }

  #dropOldest(): void {
    this.#droppedSeq = this.#removeFirst()?.seq ?? this.#droppedSeq;
    this.#dropped += 1;
  }

  #removeFirst(): Entry | undefined {
    const first = this.#entries.shift();
    this.#chars -= first?.chars ?? 0;
    return first;
  }

  #changed(): void {
    this.#wake.wake();
  }
}

function sizeOf(activity: SubagentActivity): number {
  switch (activity.kind) {
    case 'text':
      return activity.text.length;
    case 'tool':
      return activity.title.length;
    case 'plan':
      return activity.entries.reduce((sum, entry) => sum + entry.content.length, 0);
    case 'image':
    case 'usage':
      return 100;
    default:
      return activity satisfies never;
  }
}
