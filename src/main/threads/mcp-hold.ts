/**
 * MCP servers of sessions that are on no thread: started ahead of the first prompt, while a person still types it, and ended
 * with a session that nobody attaches any more.
 */
import type { McpTimes } from '../../shared/mcp-protocol.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import type { BrokerThread } from './broker-thread.ts';
import type { SessionPlace } from './session-task.ts';

type Place = Pick<SessionPlace, 'cwd' | 'paths' | 'workspace'> & { readonly id: string };

export class McpHold {
  readonly #broker: Pick<BrokerThread, 'api' | 'mark' | 'releaseOwner'>;
  readonly #times: McpTimes;

  constructor(broker: Pick<BrokerThread, 'api' | 'mark' | 'releaseOwner'>, { connectMs, callMs, idleMs }: McpTimes) {
    this.#broker = broker;
    this.#times = { connectMs, callMs, idleMs };
  }

  /** By which the processes of this server are known. */
  get ownMark(): string {
    return this.#broker.mark;
  }

  /** Waits for nothing. The broker starts them only where there is room for that; whoever attaches the session asks again. */
  openAhead({ id, cwd, paths, workspace }: Place): void {
    const servers = workspace?.mcpServers ?? [];
    if (servers.length === 0 || this.#times.idleMs === 0) return;
    const request = {
      owner: id,
      servers,
      directories: workspaceRoots({ cwd, ...workspace }),
      times: this.#times,
      spillDir: paths.spillDir,
    };
    // A broker that is gone, or going: the session's own thread will notice.
    void Promise.resolve()
      .then(() => this.#broker.api.openMcp({ ...request, ahead: true }))
      .catch(() => undefined);
  }

  /** Fulfils when nothing of them is left. Never rejects. */
  async release({ id, workspace }: Place): Promise<void> {
    if ((workspace?.mcpServers ?? []).length > 0) await this.#broker.releaseOwner(id);
  }
}
