/**
 * What a mode means: pure, and the only place where it has a meaning.
 *
 * It decides on what a call would touch, never on a tool's name and never on what a command seems to do: no parser of a
 * shell has ever been right about the next command. Where two rules disagree the stricter one wins.
 */
import type { PermissionMode } from '../events.ts';
import { selfProvider } from '../subagent-protocol.ts';
import { isInside, isInsideAny } from '../path-inside.ts';
import { commandGrant, type KnownConditions } from './command-grant.ts';
import { isSecretFile } from './secret-files.ts';
import { isControlFile } from './control-files.ts';

/** A path as it was given, made absolute, and where it really leads; undefined when that cannot be known. */
export interface ResolvedPath {
  readonly given: string;
  readonly canonical: string | undefined;
  /** Known to be a directory; only looked at where a policy needs it. */
  readonly isDirectory?: boolean;
}

/** What a call would touch, with its paths resolved. */
export type ResolvedAccess =
  | { readonly kind: 'none' }
  | { readonly kind: 'read' | 'write'; readonly paths: readonly ResolvedPath[] }
  | CommandAccess
  | { readonly kind: 'delegate'; readonly provider: string }
  | McpAccess;

export interface CommandAccess {
  readonly kind: 'execute';
  readonly command: string;
  readonly cwd: string;
  readonly canonicalCwd?: string | undefined;
  readonly background?: boolean;
  /** It asks for the network. */
  readonly network?: boolean;
  /** Absent where nobody has asked for them: then it may reach everything. */
  readonly conditions?: KnownConditions;
}

/** A call of a tool of an MCP server. `print` changes with what the server is started with and with what the tool says of itself. */
export interface McpAccess {
  readonly kind: 'mcp';
  readonly server: string;
  readonly tool: string;
  readonly print: string;
}

export interface PolicyContext {
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** All directories of the workspace, canonical, `cwd` among them; `cwd` alone when absent. */
  readonly roots?: readonly string[];
  /** Keys that a client has allowed for longer than one call. */
  readonly grants: Pick<ReadonlySet<string>, 'has'>;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories?: readonly string[];
}

/** What an answer that lasts would bind to: never more than exactly this. */
export interface Grant {
  readonly key: string;
  /** The same in words, for a button. */
  readonly scope: string;
  /** Behind the scope of a yes: in which circumstances that holds. */
  readonly circumstance?: string;
  /** Keys of answers that were given for more: a yes to one of them is a yes here. */
  readonly wider?: readonly string[];
  /** What a no binds to, where that is more than what a yes does. */
  readonly rejectKey?: string;
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
  const refusal = refusedByMode(mode, access);
  if (refusal !== undefined) return { kind: 'deny', text: refusal };
  if (mode === 'full-access') return { kind: 'allow' };
  const question = questionAbout(mode, access, context);
  if (question === undefined) return { kind: 'allow' };
  const granted = coveringKeys(question.grant).find((key) => context.grants.has(key));
  if (granted !== undefined) return { kind: 'granted', key: granted };
  return { kind: 'ask', ...question };
}

/** What a mode refuses whatever a policy or a grant says: the text for the model, else `undefined`. */
export function refusedByMode(mode: PermissionMode, access: ResolvedAccess): string | undefined {
  if ((mode !== 'read-only' && mode !== 'plan') || access.kind === 'none' || access.kind === 'read') return undefined;
  // What its server calls reading is a word of the server's.
  if (access.kind === 'mcp') return mode === 'plan' ? planMcpText : readOnlyMcpText;
  if (access.kind !== 'delegate') return mode === 'plan' ? planText : readOnlyText;
  // A session of this server gets the same mode; what another program does is not known here.
  return access.provider === selfProvider ? undefined : readOnlyDelegationText;
}

const readOnlyText =
  'This session is read-only: commands and changes of files are refused, so nothing was done. Only the user can change the mode. Go on with reading and searching, or say what you would have changed.';
const planText =
  'This session is making a plan: commands and changes of files are refused until the person has approved one, so nothing was done. Go on with reading and searching.';
const readOnlyMcpText =
  'This session is read-only: tools of MCP servers are refused, since what they do is not known here. Nothing was done. Only the user can change the mode. Go on with your own tools.';
const planMcpText =
  'This session is making a plan: tools of MCP servers are refused until the person has approved one, so nothing was done. Go on with your own tools.';
const readOnlyDelegationText = `This session is read-only: it may delegate to the provider "${selfProvider}" alone, so nothing was done. Only the user can change the mode.`;

interface Question {
  readonly why: string | undefined;
  readonly grant: Grant;
}

function questionAbout(mode: PermissionMode, access: ResolvedAccess, context: PolicyContext): Question | undefined {
  switch (access.kind) {
    case 'read':
    case 'write':
      return pathQuestion(mode, access, context);
    case 'execute':
      return { why: undefined, grant: executeGrant(access) };
    case 'delegate':
      if (access.provider === selfProvider) return undefined;
      return { why: 'Another program is to work here, with rights of its own.', grant: providerGrant(access.provider) };
    case 'mcp':
      return { why: 'A tool of an MCP server: what it does is known to that server alone.', grant: mcpGrant(access) };
    case 'none':
    default:
      return undefined;
  }
}

/** What an allowed question about the whole of a call binds to. */
export function grantFor(access: ResolvedAccess, toolName: string): Grant {
  switch (access.kind) {
    case 'read':
    case 'write':
      return pathGrant(access.kind, access.paths);
    case 'execute':
      return executeGrant(access);
    case 'delegate':
      return providerGrant(access.provider);
    case 'mcp':
      return mcpGrant(access);
    case 'none':
    default:
      return { key: JSON.stringify(['tool', toolName]), scope: `the tool ${toolName}` };
  }
}

/** Keys of which a yes to any is enough. */
export function coveringKeys({ key, wider = [] }: Grant): readonly string[] {
  return [key, ...wider];
}

function executeGrant({ command, cwd, canonicalCwd = cwd, background = false, conditions = 'unknown' }: CommandAccess): Grant {
  return commandGrant({ command, cwd: canonicalCwd, background, conditions });
}

function providerGrant(provider: string): Grant {
  return { key: JSON.stringify(['delegate', provider]), scope: `delegating to ${provider}` };
}

/** Of a name on a button. */
const longestWord = 60;

/** A server or a tool that is not what it was needs a new word. */
function mcpGrant({ server, tool, print }: McpAccess): Grant {
  return {
    key: JSON.stringify(['mcp', server, tool, print]),
    scope: `${tool.slice(0, longestWord)} of the MCP server ${server.slice(0, longestWord)}`,
  };
}

/** These very paths together, wherever links lead. */
export function pathGrant(kind: 'read' | 'write', paths: readonly ResolvedPath[]): Grant {
  const names = paths.map((path) => path.canonical ?? path.given).sort();
  const [act, one, many] = kind === 'read' ? ['reading', 'path', 'paths'] : ['writing', 'file', 'files'];
  return { key: JSON.stringify([kind, ...names]), scope: `${act} exactly ${names.length === 1 ? `this ${one}` : `these ${many}`}` };
}

type PathAccess = Extract<ResolvedAccess, { kind: 'read' | 'write' }>;

function pathQuestion(mode: PermissionMode, access: PathAccess, context: PolicyContext): Question | undefined {
  const reasons = access.paths.map((path) => reasonToAsk(mode, access.kind, path, context));
  const why = access.paths.length === 0 ? 'The call does not say which file it touches.' : reasons.find((reason) => reason !== undefined);
  if (why === undefined) return undefined;
  const asked = access.paths.filter((_, index) => reasons[index] !== undefined);
  return { why, grant: pathGrant(access.kind, asked) };
}

function reasonToAsk(mode: PermissionMode, kind: 'read' | 'write', path: ResolvedPath, context: PolicyContext): string | undefined {
  const guarded = reasonToGuard(kind, path, context);
  if (guarded !== undefined || mode === 'accept-edits') return guarded;
  if (path.canonical === undefined) return 'It cannot be known where this path leads.';
  return isInsideAny(context.roots ?? [context.cwd], path.canonical) ? undefined : 'This path lies outside the workspace.';
}

/** Why nothing broader than a word about this very file may allow this; `undefined` for an ordinary file. */
export function reasonToGuard(
  kind: 'read' | 'write',
  path: ResolvedPath,
  { cwd, roots = [cwd], ownDirectories }: Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'>,
): string | undefined {
  const names = path.canonical === undefined ? [path.given] : [path.given, path.canonical];
  if (kind === 'read') return names.some(isSecretFile) ? 'This file may hold secrets.' : undefined;
  const isOwn = names.some((name) => ownDirectories?.some((directory) => isInside(directory, name)) === true);
  if (isOwn || names.some((name) => isControlFile(name, roots))) return 'This file can change what other programs run or trust.';
  return undefined;
}
