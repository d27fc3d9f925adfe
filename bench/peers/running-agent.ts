/** An agent that runs, whoever wrote it: one process for all sessions, or a process for each. */
import { AcpClient, type AgentCommand, type Heard } from './acp-client.ts';
import { ProcessTree } from './process-tree.ts';

export interface AgentFolders {
  readonly home: string;
  /** Of its sessions; empty. */
  readonly work: string;
}

export interface RunningAgent {
  readonly tree: ProcessTree;
  /** From the start of the process to the answer of `initialize`. */
  readonly initializeMs: number;
  /** How many sessions are opened at a time. */
  readonly together: number;
  newSession(): Promise<string>;
  /** Fulfils with the stop reason; rejects with the agent's error, or when it takes too long. */
  prompt(session: string, text: string): Promise<string>;
  cancel(session: string): void;
  heard(session: string): Heard | undefined;
  stderrTail(): string;
  /**
   * Ends its input; milliseconds to its exit, or {@link exitLimitMs}. Whatever is left of it then is killed.
   *
   * @throws Error when something cannot be killed
   */
  close(): Promise<number>;
}

/** An agent that has not ended by then does not end. */
export const exitLimitMs = 3000;

/** Starts it; rejects, with nothing left, when it does not answer `initialize`. */
export async function startAgent(command: AgentCommand, folders: AgentFolders): Promise<RunningAgent> {
  const tree = new ProcessTree();
  try {
    return await OneProcess.start(command, folders, tree);
  } catch (error) {
    await tree.end();
    throw error;
  }
}

class OneProcess implements RunningAgent {
  readonly tree: ProcessTree;
  readonly initializeMs: number;
  readonly together = 1;
  readonly #client: AcpClient;

  static async start(command: AgentCommand, folders: AgentFolders, tree: ProcessTree): Promise<OneProcess> {
    const start = performance.now();
    const client = new AcpClient(command, folders, tree);
    try {
      await client.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    } catch (error) {
      throw new Error(`initialize: ${(error as Error).message}; ${client.stderrTail()}`, { cause: error });
    }
    return new OneProcess(client, tree, performance.now() - start);
  }

  constructor(client: AcpClient, tree: ProcessTree, initializeMs: number) {
    this.#client = client;
    this.tree = tree;
    this.initializeMs = initializeMs;
  }

  newSession(): Promise<string> {
    return this.#client.newSession();
  }

  prompt(session: string, text: string): Promise<string> {
    return this.#client.prompt(session, text);
  }

  cancel(sessionId: string): void {
    this.#client.notify('session/cancel', { sessionId });
  }

  heard(session: string): Heard | undefined {
    return this.#client.heard.get(session);
  }

  stderrTail(): string {
    return this.#client.stderrTail();
  }

  async close(): Promise<number> {
    const ms = await this.leave();
    await endTree(this.tree);
    return ms;
  }

  async leave(): Promise<number> {
    const start = performance.now();
    return (await this.#client.leave(exitLimitMs)) ? performance.now() - start : exitLimitMs;
  }
}

/** A process of the same agent for each session; the first one is started at once. */
export async function startProcessPerSession(command: AgentCommand, folders: AgentFolders): Promise<RunningAgent> {
  const tree = new ProcessTree();
  const start = (): Promise<OneProcess> => OneProcess.start(command, folders, tree);
  try {
    return new ProcessPerSession(await start(), start, tree);
  } catch (error) {
    await tree.end();
    throw error;
  }
}

class ProcessPerSession implements RunningAgent {
  readonly tree: ProcessTree;
  readonly initializeMs: number;
  /** One at a time would not use the cores. */
  readonly together = 4;
  readonly #start: () => Promise<OneProcess>;
  readonly #processes: OneProcess[];
  /** Its number is the name of the session for us, since two processes may give one id. */
  readonly #sessions: { readonly process: OneProcess; readonly id: string }[] = [];
  #first: OneProcess | undefined;

  constructor(first: OneProcess, start: () => Promise<OneProcess>, tree: ProcessTree) {
    this.#first = first;
    this.#processes = [first];
    this.#start = start;
    this.tree = tree;
    this.initializeMs = first.initializeMs;
  }

  async newSession(): Promise<string> {
    const process = this.#first ?? (await this.#another());
    this.#first = undefined;
    const id = await process.newSession();
    return String(this.#sessions.push({ process, id }) - 1);
  }

  prompt(session: string, text: string): Promise<string> {
    const { process, id } = this.#of(session);
    return process.prompt(id, text);
  }

  cancel(session: string): void {
    const { process, id } = this.#of(session);
    process.cancel(id);
  }

  heard(session: string): Heard | undefined {
    const { process, id } = this.#of(session);
    return process.heard(id);
  }

  stderrTail(): string {
    return this.#processes.map((one) => one.stderrTail()).find((text) => text !== '') ?? '';
  }

  async close(): Promise<number> {
    const ms = Math.max(...(await Promise.all(this.#processes.map((one) => one.leave()))));
    await endTree(this.tree);
    return ms;
  }

  async #another(): Promise<OneProcess> {
    const process = await this.#start();
    this.#processes.push(process);
    return process;
  }

  #of(session: string): { readonly process: OneProcess; readonly id: string } {
    const found = this.#sessions[Number(session)];
    if (found === undefined) throw new Error(`no session ${session}`);
    return found;
  }
}

async function endTree(tree: ProcessTree): Promise<void> {
  const left = await tree.end();
  if (left.length > 0) throw new Error(`processes that cannot be killed: ${left.join(', ')}`);
}
