/**
 * How a wrong policy is reported: the exact place, what was expected, and of what kind it was that came. Never the value
 * itself, since a policy may come in a request of a client.
 */
import { ServerError } from '../../../shared/errors.ts';

export interface PolicyFault {
  /** For example `rules[2].commands[0]`. */
  readonly place: string;
  readonly expected: string;
  /** Shown by its kind and size alone. */
  readonly came: unknown;
  /** The file or the member of the request that holds the policy. */
  readonly where: string;
  readonly suggestion?: string | undefined;
}

/**
 * Makes the CONFIG_INVALID error. Its message and data hold no value, so a caller that answers a request may make an
 * INVALID_PARAMS error of both as they are.
 */
export function policyFault({ place, expected, came, where, suggestion }: PolicyFault): ServerError {
  const kind = kindOf(came);
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  return new ServerError('CONFIG_INVALID', `${place}: expected ${expected}, came ${kind} (${where}).${hint}`, {
    data: { key: place, expected, came: kind, where, ...(suggestion === undefined ? {} : { suggestion }) },
  });
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return value === '' ? 'empty text' : `text of ${value.length} characters`;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'number' || typeof value === 'bigint') return 'a number';
  if (typeof value === 'boolean') return 'true or false';
  return value instanceof Date ? 'a date' : 'a table';
}
