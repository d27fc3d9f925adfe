/**
 * Reads `_meta["dsh-acp"]`, what a client may say beyond ACP. Whatever is not understood there is refused by name: a budget
 * or a policy that is silently ignored is worse than an error. What other vendors put into `_meta` is not looked at.
 */
import type * as z from 'zod/v4';
import { ServerError } from '../../../shared/errors.ts';

export const extensionName = 'dsh-acp';

/** Of the members named above; goes up when one changes its meaning. */
export const extensionVersion = 1;

const shownLength = 60;

/** Params of a request, as far as `_meta` goes. */
export interface WithMeta {
  readonly _meta?: Record<string, unknown> | null | undefined;
}

/** What the client said under our name; an empty object when it said nothing. @throws ServerError INVALID_PARAMS */
export function readExtension<T>(params: WithMeta | undefined | null, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(params?._meta?.[extensionName] ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refusal(pathOf(issue), reasonOf(issue));
}

/** `field` below our name; empty for the whole. Neither it nor `reason` may hold a value. */
export function refusal(field: string, reason: string): ServerError {
  const where = field === '' ? `_meta["${extensionName}"]` : `_meta["${extensionName}"].${field}`;
  return new ServerError('INVALID_PARAMS', `${where}: ${reason}`, { data: { field: where } });
}

function pathOf(issue: z.core.$ZodIssue | undefined): string {
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return [...(issue?.path ?? []), ...keys].map((part) => String(part).slice(0, shownLength)).join('.');
}

function reasonOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'unrecognized_keys') return 'there is no such member; it was refused, not ignored.';
  // The library's texts name types and limits, never values.
  return `${(issue?.message ?? 'not valid').replace(/^Invalid input: /, '')}.`;
}
