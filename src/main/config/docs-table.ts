/** The table of settings in `docs/configuration.md`, made from the schema. A test checks that the page holds it. */
import { describeType } from './check-value.ts';
import { flagOf, placeOf, variableOf } from './key-spelling.ts';
import { keyNames, specOf } from './schema.ts';

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** Markdown, a row a key, with a newline at the end. */
export function settingsTable(): string {
  const rows = keyNames.map((name) => {
    const spec = specOf(name);
    const fallback = spec.default === undefined ? (spec.defaultText ?? 'none') : `\`${spec.default}\``;
    const flag = flagOf(name);
    const names = [`\`${placeOf(name)}\``, flag === undefined ? 'no flag' : `\`${flag}\``, `\`${variableOf(name)}\``].join('<br>');
    const alias = spec.alias === undefined ? '' : ` The file may also spell it \`${spec.alias}\`.`;
    return `| ${names} | ${cell(describeType(spec.type))} | ${cell(fallback)} | ${cell(spec.doc)}${alias} |`;
  });
  return `| key, flag, variable | value | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}
