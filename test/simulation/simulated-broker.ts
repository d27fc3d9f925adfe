/**
 * The broker without processes. The one command it knows is `work NAME MS HOW`; it holds the program to what must be true when a
 * command begins: its start is on the disk, and it never began before.
 */
import type { BrokerApi, RunRequest, RunResult } from '../../src/shared/broker-protocol.ts';
import type { Disk } from './disk.ts';
import type { World } from './world.ts';

interface Run {
  readonly request: RunRequest;
  readonly end: (cancelled: boolean) => void;
  readonly isStubborn: boolean;
}

export class SimulatedBroker {
  /** Commands that ever began, over all servers of the simulation. */
  readonly #begun: Set<string>;
  readonly #runs = new Map<string, Run>();
  readonly #world: World;
  readonly #disk: Disk;
  readonly #note: (what: string) => void;
  readonly #complain: (what: string) => void;

  constructor(parts: { world: World; disk: Disk; begun: Set<string>; note: (what: string) => void; complain: (what: string) => void }) {
    this.#world = parts.world;
    this.#disk = parts.disk;
    this.#begun = parts.begun;
    this.#note = parts.note;
    this.#complain = parts.complain;
  }

  get running(): number {
    return this.#runs.size;
  }

  readonly api: Partial<BrokerApi> = {
    run: (request) => this.#run(request),
    cancelRun: async (owner, runId) => this.#cancel(`${owner}/${runId}`),
    readRun: () => new Promise((resolve) => this.#world.after(50, () => resolve({ text: '', over: true }))),
    countBackground: async () => 0,
    canCutNetwork: async () => false,
    releaseOwner: async (owner) => this.release(owner),
    parkOwner: async (owner) => this.release(owner),
    adopt: async () => undefined,
  };

  release(owner: string): void {
    for (const [key, run] of this.#runs) if (run.request.owner === owner) this.#finish(key, true);
  }

  #run(request: RunRequest): Promise<RunResult> {
    const world = this.#world;
    const [, name = '?', ms = '0', how = 'ok'] = (request.args[1] ?? '').split(' ');
    const key = `${request.owner}/${request.runId}`;
    this.#note(`command ${name} begins`);
    if (this.#begun.has(name)) this.#complain(`the command ${name} ran twice`);
    this.#begun.add(name);
    const durable = this.#disk.durableText(`/sim/state/sessions/${request.owner}.jsonl`);
    if (!hasStart(durable, request.runId)) this.#complain(`the command ${name} began before its start was on the disk`);
    return new Promise((resolve) => {
      const start = world.now;
      const end = (cancelled: boolean): void => {
        this.#note(`command ${name} ends${cancelled ? ', cancelled' : ''}`);
        resolve(
          result({ cancelled, exitCode: cancelled ? null : how === 'fail' ? 1 : 0, text: `${name} done`, durationMs: world.now - start }),
        );
      };
      this.#runs.set(key, { request, end, isStubborn: how === 'stubborn' });
      world.after(Number(ms), () => this.#finish(key, false), { kind: 'command' });
    });
  }

  #cancel(key: string): void {
    const run = this.#runs.get(key);
    if (run === undefined) return;
    const delay = run.isStubborn ? 4000 : this.#world.random.next() * 30;
    this.#world.after(delay, () => this.#finish(key, true), { kind: 'command' });
  }

  #finish(key: string, cancelled: boolean): void {
    const run = this.#runs.get(key);
    this.#runs.delete(key);
    run?.end(cancelled);
  }
}

function hasStart(log: string, callId: string): boolean {
  return log.split('\n').some((line) => line.startsWith('{"type":"tool/start"') && line.includes(JSON.stringify(callId)));
}

function result({
  cancelled,
  exitCode,
  text,
  durationMs,
}: {
  cancelled: boolean;
  exitCode: number | null;
  text: string;
  durationMs: number;
}): RunResult {
  const stream = (content: string) => ({ text: content, totalBytes: content.length, truncated: false });
  return {
    exitCode,
    signal: cancelled ? 'SIGTERM' : null,
    timedOut: false,
    cancelled,
    stdout: stream(text),
    stderr: stream(''),
    shown: stream(text),
    durationMs,
  };
}
