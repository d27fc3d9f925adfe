/** Finds and reads the configuration file. */
import { isAbsolute, join, resolve } from 'node:path';
import { configError } from './config-error.ts';
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';
import { configFileVariable, type Layer, readTable, type Surroundings } from './layers.ts';
import { parseToml, readTextFile } from './read-text-file.ts';
import { parseSubagents, secretVariable, subagentsKey } from './subagents/parse-subagents.ts';

export interface ConfigFile {
  readonly path: string;
  /** Whether it was named, by flag or variable; only a named file must exist. */
  readonly named: boolean;
  readonly found: boolean;
  readonly layer: Layer;
  /** Its `[[subagents]]`. */
  readonly subagents: readonly SubagentProvider[];
}

/** `undefined` when nothing is named and there is neither `XDG_CONFIG_HOME` nor a home. */
function locate(flag: string | undefined, around: Surroundings): { path: string; where: string; named: boolean } | undefined {
  const variable = around.env[configFileVariable];
  if (flag !== undefined) return { path: resolve(around.cwd, flag), where: '--config', named: true };
  if (variable !== undefined && variable !== '') return { path: resolve(around.cwd, variable), where: configFileVariable, named: true };
  const directory = userConfigDirectory(around);
  return directory === undefined ? undefined : { path: join(directory, 'config.toml'), where: 'default file', named: false };
}

/** Where a user keeps what belongs to this program, wherever the configuration file is. */
export function userConfigDirectory({ env, home }: Surroundings): string | undefined {
  const xdg = env['XDG_CONFIG_HOME'] ?? '';
  const base = isAbsolute(xdg) ? xdg : isAbsolute(home) ? join(home, '.config') : undefined;
  return base === undefined ? undefined : join(base, 'dsh-acp');
}

/**
 * Reads `--config FILE`, `$DSH_ACP_CONFIG` or `$XDG_CONFIG_HOME/dsh-acp/config.toml`, the first that is given.
 *
 * @throws ServerError CONFIG_INVALID when a named file is missing, the text is no TOML, a key is wrong, or a file with
 * an api_key, or with a secret for a subagent, can be read by other users
 */
export async function readConfigFile(flag: string | undefined, around: Surroundings): Promise<ConfigFile | undefined> {
  const place = locate(flag, around);
  if (place === undefined) return undefined;
  const { path, named } = place;
  const content = await readTextFile(path, { key: 'config', where: place.where, isOptional: !named });
  if (content === undefined) return { path, named, found: false, layer: new Map(), subagents: [] };
  const { [subagentsKey]: tables, ...table } = await parseToml(content.text, { path, key: 'config' });
  const layer = readTable(table, path, around.home);
  const subagents = parseSubagents(tables, path, around.home);
  if (layer.has('api_key')) requirePrivate(content.mode, path, 'api_key');
  const secret = secretVariable(subagents);
  if (secret !== undefined) requirePrivate(content.mode, path, `env of ${secret}`);
  return { path, named, found: true, layer, subagents };
}

/** @throws ServerError CONFIG_INVALID when other users may read the file */
function requirePrivate(fileMode: number, path: string, key: string): void {
  if ((fileMode & 0o077) === 0 || process.platform === 'win32') return;
  const mode = (fileMode & 0o777).toString(8).padStart(4, '0');
  throw configError({ key, expected: `a file with mode 0600 around a key (run: chmod 600 ${path})`, came: mode, where: path });
}
