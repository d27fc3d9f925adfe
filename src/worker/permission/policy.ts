/**
 * The permission policy: pure, and the only place where a mode has a meaning.
 *
 * It decides on what a call would touch, never on a tool's name and never on what a command seems to do: no parser of a
 * shell has ever been right about the next command. Where two rules disagree the stricter one wins.
 */
import type { PermissionMode } from '../../shared/events.ts';
import { isInside } from '../display/path-inside.ts';
import { isControlFile, isSecretFile } from './sensitive-paths.ts';

/** A path as it was given, made absolute, and where it really leads; undefined when that cannot be known. */
export interface ResolvedPath {
  readonly given: string;
  readonly canonical: string | undefined;
}

/** What a call would touch, with its paths resolved. */
export type ResolvedAccess =
  | { readonly kind: 'none' }
  | { readonly kind: 'read' | 'write'; readonly paths: readonly ResolvedPath[] }
  | { readonly kind: 'execute'; readonly command: string; readonly cwd: string };

export interface PolicyContext {
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** Keys that a client allowed for this session. */
  readonly grants: ReadonlySet<string>;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories?: readonly string[];
}

/** What "allow for this session" would bind to. */
export interface Grant {
  readonly key: string;
  /** For a button. */
  readonly words: string;
}

export type PolicyVerdict =
  | { readonly kind: 'allow' }
  /** Allowed because of a grant given earlier. */
  | { readonly kind: 'granted'; readonly key: string }
  /** `why` is for people and is missing where the call speaks for itself. */
  | { readonly kind: 'ask'; readonly why: string | undefined; readonly grant: Grant }
  /** `text` is for the model. */
  | { readonly kind: 'deny'; readonly text: string };

/** Decides about one call in a mode. */
export function decideAccess(mode: PermissionMode, access: ResolvedAccess, context: PolicyContext): PolicyVerdict {
  if (access.kind === 'none' || mode === 'full-access') return { kind: 'allow' };
  if (mode === 'read-only' && access.kind !== 'read') return { kind: 'deny', text: readOnlyText };
  const question = access.kind === 'execute' ? commandQuestion(access) : pathQuestion(mode, access, context);
  if (question === undefined) return { kind: 'allow' };
  if (context.grants.has(question.grant.key)) return { kind: 'granted', key: question.grant.key };
  return { kind: 'ask', ...question };
}

const readOnlyText =
  'This session is read-only: commands and changes of files are refused, so nothing was done. Only the user can change the mode. Go on with reading and searching, or say what you would have changed.';

interface Question {
  readonly why: string | undefined;
  readonly grant: Grant;
}

function commandQuestion(access: { readonly command: string; readonly cwd: string }): Question {
  const key = JSON.stringify(['execute', access.cwd, access.command]);
  return { why: undefined, grant: { key, words: 'Allow this exact command for this session' } };
}

type PathAccess = Extract<ResolvedAccess, { kind: 'read' | 'write' }>;

function pathQuestion(mode: PermissionMode, access: PathAccess, context: PolicyContext): Question | undefined {
  const reasons = access.paths.map((path) => reasonToAsk(mode, access.kind, path, context));
  const why = access.paths.length === 0 ? 'The call does not say which file it touches.' : reasons.find((reason) => reason !== undefined);
  if (why === undefined) return undefined;
  const asked = access.paths.filter((_, index) => reasons[index] !== undefined).map((path) => path.canonical ?? path.given);
  const what = access.kind === 'read' ? 'reading' : 'writing';
  const words = `Allow ${what} ${asked.length === 1 ? 'this file' : 'exactly these files'} for this session`;
  return { why, grant: { key: JSON.stringify([access.kind, ...asked.sort()]), words } };
}

function reasonToAsk(mode: PermissionMode, kind: 'read' | 'write', path: ResolvedPath, context: PolicyContext): string | undefined {
  const names = path.canonical === undefined ? [path.given] : [path.given, path.canonical];
  if (kind === 'write') {
    const isOwn = names.some((name) => context.ownDirectories?.some((directory) => isInside(directory, name)) === true);
    if (isOwn || names.some((name) => isControlFile(name, context.cwd))) return 'This file can change what other programs run or trust.';
  } else if (names.some(isSecretFile)) {
    return 'This file may hold secrets.';
  }
  if (mode === 'accept-edits') return undefined;
  if (path.canonical === undefined) return 'It cannot be known where this path leads.';
  return isInside(context.cwd, path.canonical) ? undefined : 'This path lies outside the workspace.';
}
