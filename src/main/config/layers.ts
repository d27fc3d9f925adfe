/** Reads the places a setting can come from: the file, the environment, the command line. Nothing is merged here. */
import { isAbsolute } from 'node:path';
import { checkValue } from './check-value.ts';
import { configError, nearest } from './config-error.ts';
import { flagOf, placeOf, variableOf } from './key-spelling.ts';
import { type KeyName, keyNames, sectionNames, specOf } from './schema.ts';
import { subagentsKey } from './subagents/parse-subagents.ts';

export type Source = 'default' | 'file' | 'env' | 'flag';

export interface Given {
  readonly value: string | number;
  readonly source: Source;
  /** The flag, the variable or the place in the file. */
  readonly where: string;
}

/** What one place says: checked values by key. */
export type Layer = ReadonlyMap<KeyName, Given>;

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute; `''` when the user has none. */
  readonly home: string;
  readonly cwd: string;
}

/** Variables with our prefix that are no setting of the table. */
export const configFileVariable = 'DSH_ACP_CONFIG';
/** Read before everything else, see `code-store.ts`. */
const codeCacheVariable = 'DSH_ACP_CODE_CACHE';

/** @throws ServerError CONFIG_INVALID for a value that does not fit its key */
export function readFlags(flags: ReadonlyMap<KeyName, string>, around: Surroundings): Layer {
  const layer = new Map<KeyName, Given>();
  for (const [name, value] of flags) {
    const where = flagOf(name) ?? name;
    layer.set(name, { value: checkValue(name, { value, asText: true, where, baseDir: around.cwd }, around.home), source: 'flag', where });
  }
  return layer;
}

/**
 * Reads the `DSH_ACP_*` variables. An empty one counts as not set.
 *
 * @throws ServerError CONFIG_INVALID for an unknown variable with our prefix, and for a value that does not fit
 */
export function readEnvironment(around: Surroundings): Layer {
  const layer = new Map<KeyName, Given>();
  const byVariable = new Map(keyNames.map((name) => [variableOf(name), name]));
  for (const [where, value] of Object.entries(around.env)) {
    if (!where.startsWith('DSH_ACP_') || where === configFileVariable) continue;
    if (where === codeCacheVariable) {
      checkCodeCache(value);
      continue;
    }
    const name = byVariable.get(where);
    if (name === undefined) {
      const suggestion = nearest(where, [...byVariable.keys(), configFileVariable, codeCacheVariable]);
      throw configError({ key: where, expected: 'a variable that `dsh-acp config` lists', where: 'environment', suggestion });
    }
    if (value === undefined || value === '') continue;
    layer.set(name, { value: checkValue(name, { value, asText: true, where, baseDir: around.cwd }, around.home), source: 'env', where });
  }
  return layer;
}

function checkCodeCache(value = ''): void {
  if (value === '' || value === 'off' || isAbsolute(value)) return;
  throw configError({ key: codeCacheVariable, expected: '`off` or an absolute path', came: value, where: 'environment' });
}

function findKey(written: string): KeyName | undefined {
  return keyNames.find((name) => name === written || specOf(name).alias === written);
}

function unknownKey(written: string, section: string, file: string): Error {
  const here = section === '' ? `top of ${file}` : `[${section}] of ${file}`;
  const known = findKey(written);
  if (known !== undefined) {
    const target = specOf(known).section;
    return configError({
      key: written,
      expected: target === '' ? 'it at the top of the file' : `it in [${target}]`,
      where: here,
      suggestion: placeOf(known),
    });
  }
  const words = [
    ...keyNames,
    ...keyNames.flatMap((name) => specOf(name).alias ?? []),
    ...(section === '' ? [...sectionNames, subagentsKey] : []),
  ];
  const near = nearest(written, words);
  const nearKey = near === undefined ? undefined : findKey(near);
  return configError({
    key: written,
    expected: 'a key that `dsh-acp config` lists',
    where: here,
    suggestion: nearKey === undefined ? near : placeOf(nearKey),
  });
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/**
 * Reads a parsed file. Every key must be known, and stand in its own section.
 *
 * @throws ServerError CONFIG_INVALID for the first key that is unknown, misplaced, double, or holds a wrong value
 */
export function readTable(table: Record<string, unknown>, file: string, home: string): Layer {
  const layer = new Map<KeyName, Given>();
  const take = (written: string, value: unknown, section: string) => {
    const name = findKey(written);
    if (name === undefined || specOf(name).section !== section) throw unknownKey(written, section, file);
    const where = section === '' ? `${written} in ${file}` : `[${section}] ${written} in ${file}`;
    if (layer.has(name)) throw configError({ key: name, expected: 'one spelling of it, both are there', where });
    layer.set(name, { value: checkValue(name, { value, asText: false, where, baseDir: undefined }, home), source: 'file', where });
  };
  for (const [written, value] of Object.entries(table)) {
    if (!sectionNames.some((section) => section === written)) {
      take(written, value, '');
      continue;
    }
    if (!isTable(value)) throw configError({ key: written, expected: `a section [${written}]`, came: value, where: file });
    for (const [inner, innerValue] of Object.entries(value)) take(inner, innerValue, written);
  }
  return layer;
}
