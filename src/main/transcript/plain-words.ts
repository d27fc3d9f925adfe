/** The words of a line that was made as HTML, for a terminal. Only for HTML of ours: there every text is escaped. */
import type { Html } from './html.ts';

const characters: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

export function plainWords({ text }: Html): string {
  return text
    .replace(/<b class="c">([^<]*)<\/b>/g, '\u2039$1\u203a')
    .replace(/<\/summary>\s*/g, ':\n')
    .replace(/<details>/g, '\n')
    .replace(/<[^>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|#39);/g, (_entity, name: string) => characters[name] ?? '')
    .trim();
}
