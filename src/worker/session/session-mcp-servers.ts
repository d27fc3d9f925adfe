/**
 * The MCP servers of a session with what they need of it (its journal, its tools, the broker), and how their tools are
 * shown, also those that a log alone remembers.
 */
import { toWireError } from '../../shared/errors.ts';
import type { EventInput } from '../../shared/events.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import type { SessionTools } from '../agent/session-tools.ts';
import { McpPresenters } from '../mcp/mcp-presenter.ts';
import { SessionMcp } from '../mcp/session-mcp.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

export class SessionMcpServers {
  /** Of any tool of the session, whoever has it. */
  readonly presenterOf: (toolName: string) => ToolPresenter | undefined;
  readonly #presenters = new McpPresenters();
  readonly #mcp: SessionMcp | undefined;

  constructor(task: SessionTask, thread: ThreadContext, tools: SessionTools, journal: () => SessionJournal) {
    this.presenterOf = (name) => tools.get(name) ?? this.#presenters.get(name);
    const { sessionId, mcpServers = [], settings, spillDir } = task;
    if (mcpServers.length === 0) return;
    const { firstWaitMs, ...times } = settings.mcp;
    const mcp = new SessionMcp({
      api: thread.broker,
      request: { owner: sessionId, servers: mcpServers, directories: workspaceRoots(task), times, spillDir },
      firstWaitMs,
      record: (event) => journal().append(event),
      tell: (event) => journal().tell(event),
      isBack: task.isBack === true,
      setTools: (late) => tools.setLate(late),
      onFault: (error) =>
        void thread.main.log('error', `session ${sessionId} hears nothing of its MCP servers: ${toWireError(error).message}`),
    });
    tools.waitWith((signal) => mcp.settling(signal));
    this.#mcp = mcp;
  }

  /** Learns from an event, live or of the stored log; of the latter all, in order, before {@link start}. */
  observe(event: EventInput): void {
    this.#presenters.observe(event);
    this.#mcp?.observe(event);
  }

  /** From here on they are connected to, and the log is written. */
  start(): void {
    this.#mcp?.start();
  }

  /** The session leaves: nothing more is heard. */
  stop(): void {
    this.#mcp?.stop();
  }
}
