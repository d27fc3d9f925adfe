/**
 * The answers that a permission request offers: at most one of each kind, since some clients show no more than that.
 */
import { stat } from 'node:fs/promises';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { isInside } from '../../shared/path-inside.ts';
import {
  type Grant,
  type PolicyContext,
  reasonToGuard,
  type ResolvedAccess,
  type ResolvedPath,
} from '../../shared/permission/mode-policy.ts';

export const optionIds = {
  allowOnce: 'allow_once',
  allowAlways: 'allow_always',
  rejectOnce: 'reject_once',
  rejectAlways: 'reject_always',
} as const;

export type PermissionOptions = RequestPermissionRequest['options'];

/** Whether an answer about this call may outlive it. */
export interface Lasting {
  readonly allow: boolean;
  readonly reject: boolean;
}

export const nothingLasts: Lasting = { allow: false, reject: false };

/** A key beyond this is not kept: a file of answers is for people to read. */
const longestKey = 16 * 1024;

/** In the order shown. */
export function permissionOptions({ scope, circumstance = '' }: Grant, lasting: Lasting): PermissionOptions {
  return [
    { optionId: optionIds.allowOnce, name: 'Allow once', kind: 'allow_once' },
    ...(lasting.allow
      ? [{ optionId: optionIds.allowAlways, name: `Always allow ${scope} in this workspace${circumstance}`, kind: 'allow_always' } as const]
      : []),
    { optionId: optionIds.rejectOnce, name: 'Reject once', kind: 'reject_once' },
    ...(lasting.reject
      ? [{ optionId: optionIds.rejectAlways, name: `Always reject ${scope} in this workspace`, kind: 'reject_always' } as const]
      : []),
  ];
}

/**
 * What may be answered for good. Nothing where it cannot be known what would be bound; no yes about this program's own files, which
 * would let it allow itself more, nor about a guarded directory, which is more than one file.
 */
export async function whatLasts(
  access: ResolvedAccess,
  { key }: Grant,
  places: Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'>,
): Promise<Lasting> {
  if (key.length > longestKey) return nothingLasts;
  switch (access.kind) {
    case 'execute':
      // A yes about what cannot be told now would be one for the widest circumstances.
      return access.canonicalCwd === undefined ? nothingLasts : { allow: access.conditions !== 'unknown', reject: true };
    case 'read':
    case 'write': {
      const { kind, paths } = access;
      if (paths.length === 0 || paths.some(({ canonical }) => canonical === undefined)) return nothingLasts;
      const guarded = await Promise.all(paths.map((path) => isTooMuch(kind, path, places)));
      return { allow: !guarded.includes(true), reject: true };
    }
    case 'delegate':
    case 'mcp':
    case 'none':
      return { allow: true, reject: true };
    default:
      return nothingLasts;
  }
}

async function isTooMuch(
  kind: 'read' | 'write',
  path: ResolvedPath,
  places: Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'>,
): Promise<boolean> {
  const { canonical = path.given } = path;
  if (kind === 'write' && places.ownDirectories?.some((directory) => isInside(directory, canonical)) === true) return true;
  if (reasonToGuard(kind, path, places) === undefined) return false;
  return await stat(canonical).then(
    (stats) => stats.isDirectory(),
    // Not there yet: what is made there is a file.
    () => false,
  );
}
