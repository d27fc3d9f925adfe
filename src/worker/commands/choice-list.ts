/**
 * What can be chosen, as Markdown: a line each, the current one first named.
 */

export interface ListedChoice {
  readonly id: string;
  readonly description?: string;
}

export function choiceList(title: string, current: string, choices: readonly ListedChoice[]): string {
  const lines = choices.map(({ id, description }) => `- \`${id}\`${description === undefined ? '' : `: ${description}`}`);
  return [`${title}: **${current}**`, lines.join('\n')].join('\n\n');
}
