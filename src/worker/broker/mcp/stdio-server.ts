/**
 * The program behind an MCP server on stdio: started without a shell, in a group of its own, and ended with all that it
 * left behind.
 */
import { randomUUID } from 'node:crypto';
import type { McpServerSpec } from '../../../shared/mcp-protocol.ts';
import { ByteRing } from '../byte-ring.ts';
import type { Launch, LaunchSpec, ProcessGroup } from '../process-group.ts';
import { StreamPump } from '../stream-pump.ts';
import { ChildEnding, hurriedGraces } from '../subagents/child-ending.ts';
import { within } from '../within.ts';
import { ChildTransport } from './child-transport.ts';
import { findProgram } from './find-program.ts';

const keptStderrBytes = 8 * 1024;
const shownNoiseChars = 300;
/** A program that has ended shows it first by its pipes: for its exit status, and its last words. */
const exitNoticeMs = 300;
const lastWordsMs = 100;

/** With the directories of the session's workspace. */
export type ServerLaunch = LaunchSpec & { readonly directories: readonly string[] };

export interface StdioStarter {
  /** What a server may inherit. */
  readonly environment: Readonly<Record<string, string>>;
  /** Starts a process group whose members carry the mark, beside those of the session. */
  readonly launch: (mark: string, spec: ServerLaunch) => Promise<Launch>;
  /** Ends what carries the mark, in its group or out of it. */
  readonly sweep: (mark: string) => Promise<void>;
}

type StdioSpec = Extract<McpServerSpec, { type: 'stdio' }>;

/** Rejects with an error whose message is for people. */
export async function startServer(spec: StdioSpec, directories: readonly string[], starter: StdioStarter): Promise<StdioServer> {
  const [cwd = '/'] = directories;
  const env = { ...starter.environment, ...spec.env };
  const command = await findProgram(spec.command, env['PATH'], directories);
  if (command === undefined) {
    throw new Error(`the program ${spec.command} was not found in the absolute directories of PATH that lie outside the workspace`);
  }
  const mark = `mcp-${randomUUID()}`;
  const launch = await starter.launch(mark, { command, args: spec.args, cwd, env, stdin: 'pipe', directories });
  if (!launch.ok) throw new Error(`it could not be started: ${launch.spawnError}`);
  return new StdioServer(launch.group, () => starter.sweep(mark));
}

export class StdioServer {
  readonly transport: ChildTransport;
  readonly #group: ProcessGroup;
  readonly #sweep: () => Promise<void>;
  readonly #stderr = new ByteRing(keptStderrBytes);
  readonly #stderrPump: StreamPump;
  #ending: ChildEnding | undefined;

  constructor(group: ProcessGroup, sweep: () => Promise<void>) {
    this.#group = group;
    this.#sweep = sweep;
    this.transport = new ChildTransport(group);
    this.#stderrPump = new StreamPump(group.stderr, (chunk) => {
      this.#stderr.push(chunk);
      return undefined;
    });
  }

  /** End of input, then TERM, then KILL, each after a short grace; fulfils when nothing of it is left. */
  async end(): Promise<void> {
    this.#ending ??= new ChildEnding(this.#group, hurriedGraces, this.#sweep);
    await this.#ending.done;
    // Somebody who left the group may hold the pipes still.
    this.transport.fail();
    this.#stderrPump.destroy();
  }

  /** Why it is gone, and its last words. May hold secrets. */
  async lastWords(): Promise<string> {
    const how = this.transport.failure ?? (await this.#howItEnded());
    return [how, this.tail()].filter((part) => part !== '').join('\n');
  }

  /** The end of what it wrote beside the protocol. May hold secrets. */
  tail(): string {
    const text = this.#stderr.since(0).toString('utf8');
    // The first word of a cut text may be the rest of a secret, which nobody would recognize.
    const whole = (this.#stderr.total > keptStderrBytes ? text.replace(/^\S*\s?/, '') : text).trim();
    const noise = this.transport.noise.trim();
    // The same of the end of a cut line.
    const shown = noise.length > shownNoiseChars ? `${noise.slice(0, shownNoiseChars).replace(/\S*$/, '')}…` : noise;
    return [whole, shown === '' ? '' : `on stdout: ${shown}`].filter((part) => part !== '').join('\n');
  }

  async #howItEnded(): Promise<string> {
    const status = await within(this.#group.exited, exitNoticeMs, undefined);
    if (status === undefined) return 'it closed its stdin or its stdout';
    await within(this.#stderrPump.ended, lastWordsMs, undefined);
    return status.signal === null ? `it exited with code ${status.exitCode}` : `it was ended by ${status.signal}`;
  }
}
