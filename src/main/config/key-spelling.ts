/** How a key of the table is spelled as a flag, as a variable and in the file. */
import { type KeyName, specOf } from './schema.ts';

/** `--max-threads`; `undefined` for a secret. */
export function flagOf(name: KeyName): string | undefined {
  return specOf(name).secret === true ? undefined : `--${name.replaceAll('_', '-')}`;
}

/** `DSH_ACP_MAX_THREADS`. */
export function variableOf(name: KeyName): string {
  return `DSH_ACP_${name.toUpperCase()}`;
}

/** `[threads] max_threads`: where the key stands in the file. */
export function placeOf(name: KeyName): string {
  const { section } = specOf(name);
  return section === '' ? name : `[${section}] ${name}`;
}
