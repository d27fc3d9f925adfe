/**
 * What a client says of a session's workspace beside its `cwd`, checked. Given anew with each new, load, resume and fork:
 * nothing of it is remembered.
 */
import type { Profile } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import type { McpServerSpec } from '../../shared/mcp-protocol.ts';
import { lookAtDirectory } from '../sessions/working-directory.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';
import { checkedMcpServers } from './mcp-servers.ts';

export interface WorkspaceParams {
  readonly cwd?: string;
  readonly mcpServers?: unknown[] | null;
  readonly additionalDirectories?: unknown[] | null;
}

const mostDirectories = 32;

/** @throws ServerError INVALID_PARAMS naming the member, and which one of its entries */
export async function sessionWorkspace(params: WorkspaceParams, profile: Profile): Promise<SessionWorkspace> {
  const mcpServers = checkedServers(params.mcpServers ?? [], profile);
  const additionalDirectories = await checkedDirectories(params.additionalDirectories ?? [], profile);
  return {
    ...(params.cwd === undefined ? {} : { givenCwd: params.cwd }),
    ...(additionalDirectories.length === 0 ? {} : { additionalDirectories }),
    ...(mcpServers.length === 0 ? {} : { mcpServers }),
  };
}

function checkedServers(given: readonly unknown[], profile: Profile): readonly McpServerSpec[] {
  if (given.length === 0) return [];
  if (profile !== 'automation') return checkedMcpServers(given);
  const message = 'mcpServers must be empty: in the automation profile a session has the tools of this server.';
  throw new ServerError('INVALID_PARAMS', message, { data: { field: 'mcpServers' } });
}

/** Canonical, each once, in the order given. */
async function checkedDirectories(given: readonly unknown[], profile: Profile): Promise<readonly string[]> {
  if (given.length === 0) return [];
  if (profile === 'automation') throw refused('must be empty: in the automation profile a session works in its cwd.');
  if (given.length > mostDirectories) throw refused(`may name at most ${mostDirectories} directories, and ${given.length} came.`);
  const found = await Promise.all(given.map(async (path) => (typeof path === 'string' ? await lookAtDirectory(path) : notText)));
  const paths = found.map((one, index) => {
    if (one.ok) return one.path;
    throw refused(one.fault, `[${index}]`);
  });
  return [...new Set(paths)];
}

const notText = { ok: false, fault: 'must be a string.' } as const;

function refused(fault: string, entry = ''): ServerError {
  const field = `additionalDirectories${entry}`;
  return new ServerError('INVALID_PARAMS', `${field} ${fault}`, { data: { field } });
}
