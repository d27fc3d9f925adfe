/**
 * What a client says of a session's workspace beside its `cwd`, checked.
 */
import { ServerError } from '../../shared/errors.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';

export interface WorkspaceParams {
  readonly mcpServers?: unknown[] | null;
  readonly additionalDirectories?: unknown[] | null;
}

/** @throws ServerError INVALID_PARAMS naming the member */
export async function sessionWorkspace(params: WorkspaceParams): Promise<SessionWorkspace> {
  if ((params.mcpServers?.length ?? 0) > 0) {
    throw new ServerError('INVALID_PARAMS', 'mcpServers must be empty: this server does not connect to MCP servers.', {
      data: { field: 'mcpServers' },
    });
  }
  if ((params.additionalDirectories?.length ?? 0) > 0) {
    throw new ServerError('INVALID_PARAMS', 'additionalDirectories must be empty: a session works in its cwd.', {
      data: { field: 'additionalDirectories' },
    });
  }
  return {};
}
