/** One session of the demo: its turns, and everything that was seen of it. */
import { type ClientContext, methods, type SessionNotification } from '@agentclientprotocol/sdk';
import { findWorkspaceFaults } from './check-workspace.ts';
import { turns } from './demo-script.ts';

export class SessionRun {
  readonly label: string;
  readonly workspace: string;
  state: 'waiting' | 'running' | 'done' | 'failed' = 'waiting';
  turn = 0;
  sessionId = '';
  updates = 0;
  permissions = 0;
  /** Milliseconds from a prompt to its first streamed text, a turn each. */
  readonly firstText: number[] = [];
  readonly stopReasons: string[] = [];
  readonly toolKinds = new Map<string, number>();
  readonly problems: string[] = [];
  readonly #changed: (run: SessionRun, what: string) => void;
  #promptSent = 0;
  #textSeen = true;
  #plans = 0;

  /** @param changed called for each thing worth a line in the live view */
  constructor(label: string, workspace: string, changed: (run: SessionRun, what: string) => void) {
    this.label = label;
    this.workspace = workspace;
    this.#changed = changed;
  }

  onUpdate({ update }: SessionNotification): void {
    this.updates += 1;
    if (update.sessionUpdate === 'agent_message_chunk' && !this.#textSeen) {
      this.#textSeen = true;
      this.firstText.push(performance.now() - this.#promptSent);
    }
    if (update.sessionUpdate === 'tool_call') {
      const kind = update.kind ?? 'other';
      this.toolKinds.set(kind, (this.toolKinds.get(kind) ?? 0) + 1);
      this.#changed(this, update.title);
    }
    if (update.sessionUpdate === 'plan') this.#plans += 1;
  }

  onPermission(title: string): void {
    this.permissions += 1;
    this.#changed(this, `allowed once: ${title}`);
  }

  /** Runs all turns; never rejects: what went wrong is in `problems`. */
  async run(agent: ClientContext, opened: (sessionId: string) => void): Promise<void> {
    try {
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: this.workspace, mcpServers: [] });
      this.sessionId = sessionId;
      opened(sessionId);
      for (const text of turns) await this.#runTurn(agent, text);
      await this.#check();
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : String(error));
    }
    this.state = this.problems.length === 0 ? 'done' : 'failed';
    this.#changed(this, this.problems[0] ?? 'done');
  }

  async #runTurn(agent: ClientContext, text: string): Promise<void> {
    this.turn += 1;
    this.state = 'running';
    this.#textSeen = false;
    this.#promptSent = performance.now();
    const { stopReason } = await agent.request(methods.agent.session.prompt, {
      sessionId: this.sessionId,
      prompt: [{ type: 'text', text }],
    });
    this.stopReasons.push(stopReason);
    this.#changed(this, `turn ended: ${stopReason}`);
    if (stopReason !== 'end_turn') this.problems.push(`turn ${this.turn} ended with ${stopReason}`);
    if (!this.#textSeen) this.problems.push(`turn ${this.turn} streamed no text`);
  }

  async #check(): Promise<void> {
    if (this.#plans === 0) this.problems.push('no plan was seen');
    this.problems.push(...(await findWorkspaceFaults(this.workspace)));
    for (const kind of ['read', 'search', 'execute', 'edit']) {
      if (!this.toolKinds.has(kind)) this.problems.push(`no tool call of kind ${kind} was seen`);
    }
  }
}
