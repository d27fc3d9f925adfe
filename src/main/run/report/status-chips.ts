/** How a status looks on a page: a word on its colour. The colours themselves are in the style sheet. */
import type { JobStatus } from '../job-result.ts';
import { type Html, html } from '../../transcript/html.ts';

export function statusChip(status: JobStatus): Html {
  return html`<span class="chip s-${status}">${status}</span>`;
}
