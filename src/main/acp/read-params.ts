/** The params of a method that the SDK does not know, checked, with faults in the form that its own methods have. */
import type * as z from 'zod/v4';
import { ServerError } from '../../shared/errors.ts';

/** @throws ServerError INVALID_PARAMS naming the first wrong member */
export function readParams<T extends z.ZodType>(schema: T, given: unknown): z.infer<T> {
  const parsed = schema.safeParse(given ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...keys].map((part) => String(part).slice(0, 60)).join('.');
  // The library's texts name types and limits, never values.
  const reason = (issue?.message ?? 'not valid').replace(/^Invalid input: /, '');
  throw new ServerError('INVALID_PARAMS', `${field === '' ? 'the params' : field}: ${reason}.`, { data: { field } });
}
