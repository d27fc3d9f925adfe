/** `dsh-acp config`: every setting with its value and where the value came from. Keys are never printed. */
import { settingsTable } from '../config/docs-table.ts';
import { flagOf, placeOf, variableOf } from '../config/key-spelling.ts';
import type { EffectiveSetting, LoadedConfig } from '../config/load-config.ts';
import { shownSubagents, subagentsAsText } from './shown-subagents.ts';
import { specOf } from '../config/schema.ts';
import type { PrintFormat } from './parse-command-line.ts';

function shownValue(setting: EffectiveSetting): string | number | null {
  if (setting.value === undefined) return null;
  return specOf(setting.name).secret === true ? '(set, hidden)' : setting.value;
}

function asText(loaded: LoadedConfig): string {
  const { file } = loaded;
  const fileLine = file === undefined ? 'no file (no home directory)' : `${file.path}${file.found ? '' : ' (not there)'}`;
  const head = `# file: ${fileLine}\n# model: ${loaded.choice.why}\n# prices: ${loaded.prices.why}\n`;
  const rows = loaded.settings.map((setting) => {
    const value = shownValue(setting);
    const text = value === null ? '(none)' : JSON.stringify(value);
    const origin = setting.source === 'default' ? 'default' : `${setting.source}: ${setting.where}`;
    return `${placeOf(setting.name).padEnd(38)} = ${text.padEnd(28)} # ${origin}\n    ${specOf(setting.name).doc}`;
  });
  return `${head}${rows.join('\n')}\n${subagentsAsText(loaded.config.session.subagents)}`;
}

function asJson(loaded: LoadedConfig): string {
  const settings = loaded.settings.map((setting) => ({
    key: placeOf(setting.name),
    value: shownValue(setting),
    source: setting.source,
    where: setting.where,
    flag: flagOf(setting.name) ?? null,
    variable: variableOf(setting.name),
  }));
  const { file, choice, config } = loaded;
  const shown = {
    file: file?.path ?? null,
    fileFound: file?.found ?? false,
    model: choice.why,
    prices: loaded.prices.why,
    settings,
    subagents: shownSubagents(config.session.subagents),
  };
  return `${JSON.stringify(shown, undefined, 2)}\n`;
}

/** The text for stdout. `markdown` is the table of the documentation: it does not depend on what is set. */
export function printConfig(loaded: LoadedConfig, format: PrintFormat): string {
  if (format === 'markdown') return settingsTable();
  return format === 'json' ? asJson(loaded) : asText(loaded);
}
