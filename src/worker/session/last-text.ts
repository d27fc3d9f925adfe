/**
 * The last text that the assistant committed in a turn: what a program takes as the turn's answer.
 */
import type { LogEvent } from '../../shared/events.ts';
import { sliceWhole } from '../display/title-line.ts';

/** UTF-16 units; longer answers are in the log, and were sent as updates. */
const longest = 256 * 1024;

/** As much of a turn's text as goes into an answer. */
export function answerText(text: string): string {
  return sliceWhole(text, longest);
}

export class LastText {
  #text: string | undefined;

  /** Cut at 256 K characters; `undefined` when nothing was said. */
  get current(): string | undefined {
    return this.#text;
  }

  /** Takes in the events of a turn, in order; starts anew with each turn. */
  observe(event: LogEvent): void {
    if (event.type === 'turn/start') this.#text = undefined;
    else if (event.type === 'assistant/message' && event.data.text !== '') this.#text = answerText(event.data.text);
  }
}
