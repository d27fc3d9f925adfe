/**
 * The one agent process that all jobs share. Started when it is first needed, and again when it has died; what a dead one left running is
 * ended before the next one starts.
 */
import { endLeftovers } from '../workspace/run-directory.ts';
import { markVariable, runMark } from '../job-environment.ts';
import { AgentConnection } from './agent-connection.ts';
import { AgentFault } from './agent-fault.ts';

export interface AgentHostOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly runId: string;
  readonly clientVersion: string;
  /** Ends a start that is under way. */
  readonly signal: AbortSignal;
  /** It could not be started this often in a row: there is no sense in going on. */
  readonly onBroken: (why: string) => void;
}

const startsBeforeBroken = 3;

export class AgentHost {
  readonly #options: AgentHostOptions;
  #current: Promise<AgentConnection> | undefined;
  #generation = 0;
  #failedStarts = 0;
  #stopping = false;

  constructor(options: AgentHostOptions) {
    this.#options = options;
  }

  /** A connection that is alive at this moment. @throws AgentFault of class `agent` when none can be started */
  async acquire(): Promise<AgentConnection> {
    for (;;) {
      if (this.#stopping) throw new AgentFault('lost', 'the run ends', { retryable: true });
      this.#current ??= this.#start();
      const current = this.#current;
      const connection = await current;
      if (!connection.isLost) return connection;
      // Of all that wait here the first starts it anew, and the others wait for that.
      if (this.#current === current) this.#current = undefined;
    }
  }

  /** Ends it in order. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const current = await this.#current?.catch(() => undefined);
    await current?.process.stop();
  }

  /** At once, without grace. */
  kill(): void {
    this.#stopping = true;
    void this.#current?.then(({ process }) => process.kill()).catch(() => undefined);
  }

  async #start(): Promise<AgentConnection> {
    const { argv, cwd, env, runId, clientVersion, signal, onBroken } = this.#options;
    this.#generation += 1;
    const part = `agent-${this.#generation}`;
    try {
      const connection = await AgentConnection.start(
        { argv, cwd, env: { ...env, [markVariable]: runMark(runId, part) } },
        clientVersion,
        signal,
      );
      this.#failedStarts = 0;
      void connection.lost.then(async () => {
        await connection.process.stop();
        endLeftovers(runId, part);
      });
      return connection;
    } catch (error) {
      this.#current = undefined;
      this.#failedStarts += 1;
      endLeftovers(runId, part);
      if (this.#failedStarts >= startsBeforeBroken) onBroken(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }
}
