/**
 * What another agent's call would touch, as far as the agent says it: in the words in which modes and policies are decided.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { ResolvedAccess, ResolvedPath } from '../../../shared/permission/mode-policy.ts';
import { plainArgv } from '../../../shared/plain-command.ts';
import { membersOf } from './agent-answer.ts';

export interface KnownCall {
  readonly name: string | undefined;
  /** `undefined` when the kind says nothing about what is touched. A file that is not named is no path. */
  readonly access: ResolvedAccess | undefined;
  /** False for a command of which it cannot be known which program it runs. */
  readonly isPlain: boolean;
}

/** @param cwd of the session, canonical */
export function knownCall(toolCall: RequestPermissionRequest['toolCall'], cwd: string): KnownCall {
  const { name } = membersOf(toolCall);
  const access = accessOf(toolCall, cwd);
  const isPlain = access?.kind !== 'execute' || plainArgv(access.command) !== undefined;
  return { name: typeof name === 'string' ? name : undefined, access, isPlain };
}

/** By ACP's kinds; the others say nothing about what is touched. */
function accessOf({ kind, locations, rawInput }: RequestPermissionRequest['toolCall'], cwd: string): ResolvedAccess | undefined {
  const paths = (): ResolvedPath[] => (locations ?? []).map(({ path }) => resolvedPath(resolve(cwd, path)));
  switch (kind) {
    case 'read':
    case 'search':
      return { kind: 'read', paths: paths() };
    case 'edit':
    case 'delete':
    case 'move':
      return { kind: 'write', paths: paths() };
    case 'execute': {
      const directory = directoryOf(rawInput, cwd);
      return { kind: 'execute', command: commandOf(rawInput), cwd: directory, canonicalCwd: canonical(directory) };
    }
    case 'think':
      return { kind: 'none' };
    case 'fetch':
    case 'switch_mode':
    case 'other':
    case undefined:
    case null:
    default:
      return undefined;
  }
}

/** The command line; empty when there is none. A list is one argv, written as a shell would have to be told. */
function commandOf(rawInput: unknown): string {
  const { command } = membersOf(rawInput);
  if (typeof command === 'string') return command;
  if (!Array.isArray(command) || !command.every((word) => typeof word === 'string')) return '';
  const line = command.map((word, index) => (index === 0 ? word : `'${word}'`)).join(' ');
  return plainArgv(line)?.length === command.length ? line : '';
}

/** Where the command runs: the session's directory, unless the call names another by one of the usual words. */
function directoryOf(rawInput: unknown, cwd: string): string {
  const members = membersOf(rawInput);
  const named = ['cwd', 'workdir', 'directory', 'working_directory', 'workingDirectory'].map((key) => members[key]);
  const directory = named.find((value) => typeof value === 'string');
  return directory === undefined ? cwd : resolve(cwd, directory);
}

function resolvedPath(given: string): ResolvedPath {
  const found = canonical(given);
  return {
    given,
    canonical: found,
    isDirectory: found !== undefined && statSync(found, { throwIfNoEntry: false })?.isDirectory() === true,
  };
}

/** Where the path leads, with what does not exist kept as it is; `undefined` when that cannot be known. */
export function canonical(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || isThere(path)) return undefined;
    const parent = canonical(dirname(path));
    return parent === undefined ? undefined : join(parent, basename(path));
  }
}

/** A link that leads nowhere is there. */
function isThere(path: string): boolean {
  return path === dirname(path) || lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
