/**
 * Every setting of the server, in one table: the file's key, the flag, the variable, the type, the default and the
 * sentence that explains it all come from here.
 *
 * A key has one name everywhere: `max_threads` in `[threads]` of the file, `--max-threads`, `DSH_ACP_MAX_THREADS`.
 */

import type { KeySpec, Section, ValueType } from './key-spec.ts';
import { budgetKeys } from './keys/budget.ts';
import { generalKeys } from './keys/general.ts';
import { limitsKeys } from './keys/limits.ts';
import { mcpKeys } from './keys/mcp.ts';
import { permissionsKeys } from './keys/permissions.ts';
import { memoryKeys } from './keys/memory.ts';
import { providerKeys } from './keys/provider.ts';
import { telemetryKeys } from './keys/telemetry.ts';
import { threadsKeys } from './keys/threads.ts';

export const configKeys = {
  ...generalKeys,
  ...providerKeys,
  ...threadsKeys,
  ...limitsKeys,
  ...memoryKeys,
  ...budgetKeys,
  ...permissionsKeys,
  ...mcpKeys,
  ...telemetryKeys,
} as const satisfies Record<string, KeySpec>;

export type KeyName = keyof typeof configKeys;

type ValueOf<T extends ValueType> = T extends { kind: 'integer' | 'decimal' }
  ? number
  : T extends { kind: 'choice'; values: readonly (infer V)[] }
    ? V
    : string;

/** Checked values, by key. A key that nobody set and that has no fixed default is absent. */
export type Settings = { -readonly [K in KeyName]?: ValueOf<(typeof configKeys)[K]['type']> | undefined };

export const keyNames = Object.keys(configKeys) as KeyName[];
export const sectionNames: readonly Section[] = ['provider', 'threads', 'limits', 'budget', 'permissions', 'mcp', 'telemetry'];

/** The row of a key, without the literal types of the table. */
export function specOf(name: KeyName): KeySpec {
  return configKeys[name];
}
