/** A session's log as HTML, event by event. An event whose data is not what its type says costs its own piece and nothing else. */
import type { LogEvent } from '../../shared/events.ts';
import { html } from './html.ts';
import { eventLine, itemHtml } from './item-html.ts';
import { ItemReader } from './read-items.ts';
import type { TranscriptItem } from './transcript-item.ts';

export class Transcript {
  readonly #items = new ItemReader();
  /** Of the session: paths below it are shown short. */
  cwd = '/';

  /** The HTML that the next event adds; empty for many. */
  next(event: LogEvent): string {
    return this.#rendered(() => this.#items.next(event));
  }

  /** What is still open when the log ends. */
  end(): string {
    return this.#rendered(() => this.#items.end());
  }

  #rendered(read: () => readonly TranscriptItem[]): string {
    try {
      return read()
        .map((item) => itemHtml(item, this.cwd).text)
        .join('');
    } catch {
      return eventLine(html`an event that cannot be shown`, true).text;
    }
  }
}
