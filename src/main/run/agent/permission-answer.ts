/**
 * Answers an agent that asks for permission, where no person is there: by the policies, else by the mode. What is not clearly granted is refused.
 *
 * What a call does is known here only as far as the agent says it. A rule that allows needs every one of its members to be met for certain;
 * one that asks or denies holds as well where that cannot be known. This server evaluates policies itself: what it still asks is refused.
 */
import { homedir } from 'node:os';
import { isAbsolute, relative, resolve } from 'node:path';
import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk';
import type { PermissionMode } from '../../../shared/events.ts';
import { globPattern } from '../../../shared/glob-pattern.ts';
import type { PolicyAccessKind, PolicyRule, PolicyRules } from '../../../shared/policy-rules.ts';
import { membersOf } from './agent-answer.ts';

export interface PermissionRules {
  /** Each must allow. Without any, the mode decides. */
  readonly policies: readonly PolicyRules[];
  readonly mode: PermissionMode;
  /** Of the session. Absolute. */
  readonly cwd: string;
}

type Call = RequestPermissionRequest['toolCall'];

/** `undefined` where it cannot be known. */
interface KnownCall {
  readonly name: string | undefined;
  readonly access: PolicyAccessKind | undefined;
  /** Absolute. Empty when the call names none. */
  readonly paths: readonly string[];
  readonly words: readonly string[] | undefined;
}

/** `undefined` answers that it cannot be known. */
type Match = boolean | undefined;

export function answerPermission({ options, toolCall }: RequestPermissionRequest, rules: PermissionRules): RequestPermissionResponse {
  const kinds = isAllowed(toolCall, rules) ? (['allow_once'] as const) : (['reject_once', 'reject_always'] as const);
  const option = kinds.map((kind) => options.find((one) => one.kind === kind)).find((one) => one !== undefined);
  return option === undefined ? { outcome: { outcome: 'cancelled' } } : { outcome: { outcome: 'selected', optionId: option.optionId } };
}

export function isGrant(answer: RequestPermissionResponse, { options }: RequestPermissionRequest): boolean {
  const { outcome } = answer;
  return outcome.outcome === 'selected' && options.some(({ optionId, kind }) => optionId === outcome.optionId && kind === 'allow_once');
}

function isAllowed(toolCall: Call, { policies, mode, cwd }: PermissionRules): boolean {
  const call = knownCall(toolCall, cwd);
  if (policies.length === 0) return allowedByMode(mode, call.access);
  return policies.every((policy) => allowedByPolicy(policy, call, cwd));
}

function allowedByPolicy(policy: PolicyRules, call: KnownCall, cwd: string): boolean {
  for (const rule of policy.rules) {
    const match = matches(rule, call, cwd);
    if (rule.action !== 'allow' && match !== false) return false;
    // Nobody here can cut the network of another agent's command.
    if (rule.action === 'allow' && match === true) return rule.network !== 'none';
  }
  return policy.fallback === 'allow';
}

function allowedByMode(mode: PermissionMode, access: PolicyAccessKind | undefined): boolean {
  if (mode === 'full-access') return true;
  return access === 'read' || access === 'none' || (mode === 'accept-edits' && access === 'write');
}

function knownCall(toolCall: Call, cwd: string): KnownCall {
  const name = membersOf(toolCall)['name'];
  return {
    name: typeof name === 'string' ? name : undefined,
    access: accessByKind[toolCall.kind ?? 'other'],
    paths: (toolCall.locations ?? []).map(({ path }) => resolve(cwd, path)),
    words: wordsOf(toolCall.rawInput),
  };
}

/** By ACP's kinds; the others say nothing about what is touched. */
const accessByKind: Readonly<Record<string, PolicyAccessKind>> = {
  read: 'read',
  search: 'read',
  edit: 'write',
  delete: 'write',
  move: 'write',
  execute: 'execute',
  think: 'none',
};

/** The command, if it is plainly one argv: no shell syntax in it. */
function wordsOf(rawInput: unknown): readonly string[] | undefined {
  const { command } = membersOf(rawInput);
  if (Array.isArray(command) && command.every((word) => typeof word === 'string')) return command;
  return typeof command === 'string' && /^[\w@%+=:,./-]+(?: +[\w@%+=:,./-]+)*$/.test(command) ? command.split(/ +/) : undefined;
}

function matches(rule: PolicyRule, call: KnownCall, cwd: string): Match {
  return every([
    rule.tools === undefined ? true : call.name === undefined ? undefined : someWord(rule.tools, call.name),
    rule.access === undefined ? true : call.access === undefined ? undefined : rule.access.includes(call.access),
    rule.paths === undefined ? true : pathsMatch(rule.paths, call, cwd),
    rule.commands === undefined ? true : commandsMatch(rule.commands, call),
    // Which agent another one delegates to is its own affair.
    rule.providers === undefined ? true : call.access === undefined ? undefined : false,
  ]);
}

function every(parts: readonly Match[]): Match {
  if (parts.includes(false)) return false;
  return parts.includes(undefined) ? undefined : true;
}

function someWord(patterns: readonly string[], word: string): boolean {
  return patterns.some((pattern) => wildcard(pattern).test(word));
}

/** `*` stands for any characters. */
function wildcard(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`);
}

function pathsMatch(globs: readonly string[], { paths, access }: KnownCall, cwd: string): Match {
  if (paths.length === 0) return access === 'read' || access === 'write' ? undefined : false;
  return paths.every((path) => globs.some((glob) => globMatches(glob, path, cwd)));
}

function globMatches(glob: string, path: string, cwd: string): boolean {
  const inside = relative(cwd, path);
  if (glob === '.') return inside === '';
  const full = glob.startsWith('~/') ? `${homedir()}/${glob.slice(2)}` : glob;
  if (isAbsolute(full)) return globPattern(full)?.test(path.slice(1)) === true;
  return !inside.startsWith('..') && globPattern(full.startsWith('./') ? full : `./${full}`)?.test(inside) === true;
}

function commandsMatch(commands: readonly (readonly string[])[], { words, access }: KnownCall): Match {
  if (access !== undefined && access !== 'execute') return false;
  if (words === undefined) return undefined;
  return commands.some((pattern) => {
    const open = pattern.at(-1) === '...';
    const fixed = open ? pattern.slice(0, -1) : pattern;
    const fits = open ? words.length >= fixed.length : words.length === fixed.length;
    return fits && fixed.every((word, index) => wildcard(word).test(words[index] ?? ''));
  });
}
