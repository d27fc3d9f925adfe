/** The little pictures before the titles of cards: drawn here, as a page brings nothing from elsewhere. */
import type { RenderKind } from '../../shared/render-intents.ts';
import { type Html, trusted } from './html.ts';

const paths: Readonly<Record<RenderKind, string>> = {
  read: 'M3 2.5h6.5L13 6v7.5H3zM9.5 2.5V6H13M5.5 8.5h5M5.5 11h5',
  edit: 'M10.5 2.8l2.7 2.7L6 12.7l-3.4.7.7-3.4zM9 4.3l2.7 2.7',
  delete: 'M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4',
  move: 'M2.5 8h10M9 4.5L12.5 8 9 11.5',
  search: 'M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4zM10.2 10.2l3.3 3.3',
  execute: 'M2 3h12v10H2zM4.5 6l2.2 2-2.2 2M8.5 10.2h3',
  think: 'M5.5 13.5h5M6 11.5c0-1.5-2-2.4-2-5a4 4 0 0 1 8 0c0 2.6-2 3.5-2 5z',
  fetch: 'M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM2.2 8h11.6M8 2.2c-4 4-4 7.6 0 11.6M8 2.2c4 4 4 7.6 0 11.6',
  switch_mode: 'M3 5.5h9M9.5 3L12 5.5 9.5 8M13 10.5H4M6.5 8L4 10.5 6.5 13',
  other: 'M8 2.2l1.3 3 3.2.3-2.4 2.2.7 3.2L8 9.2l-2.8 1.7.7-3.2-2.4-2.2 3.2-.3z',
};

/** Says nothing to who does not see it: the title and the name do. */
export function kindIcon(kind: RenderKind): Html {
  return trusted(`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="${paths[kind]}"/></svg>`);
}
