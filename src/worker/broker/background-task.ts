/**
 * One command that runs on while its owner does something else. Both its streams flow together, in order of arrival;
 * each read gets what came since the last one.
 */
import type { BackgroundOutput, BackgroundStatus, CommandSpec, ControlNews } from '../../shared/broker-protocol.ts';
import { BackgroundLook } from './background-look.ts';
import { ByteRing } from './byte-ring.ts';
import { defaultSpillMaxBytes, guardMs } from './foreground-run.ts';
import type { LaunchFacts, ProcessGroup } from './process-group.ts';
import { settleGroup } from './settle-group.ts';
import { SpillFile } from './spill-file.ts';
import { StreamPump } from './stream-pump.ts';
import { orphanedHead } from './utf8-cut.ts';
import { WholeCharacters } from './whole-characters.ts';

/** TERM to KILL when a task is ended: as long as a time limit gives. */
export const taskGraceMs = 2000;

export class BackgroundTask {
  readonly id: string;
  readonly owner: string;
  /** The group is gone and all output is in. Never rejects. */
  readonly over: Promise<void>;
  readonly #group: ProcessGroup;
  readonly #look: BackgroundLook | undefined;
  readonly #keepBytes: number;
  readonly #ring: ByteRing;
  readonly #spill: SpillFile | undefined;
  #readOffset = 0;
  #status: BackgroundStatus = { state: 'running' };
  #wake: (() => void)[] = [];

  constructor(id: string, spec: CommandSpec, { group, guard }: { readonly group: ProcessGroup } & LaunchFacts) {
    this.id = id;
    this.owner = spec.owner;
    this.#group = group;
    this.#look = guard === undefined ? undefined : new BackgroundLook(guard, guardMs);
    this.#keepBytes = Math.max(1, spec.keepBytes);
    this.#ring = new ByteRing(this.#keepBytes);
    this.#spill = spec.spillDir === undefined ? undefined : new SpillFile(spec.spillDir, spec.spillMaxBytes ?? defaultSpillMaxBytes);
    const sinks = [new WholeCharacters((bytes) => this.#take(bytes)), new WholeCharacters((bytes) => this.#take(bytes))] as const;
    const pumps = [new StreamPump(group.stdout, sinks[0].write), new StreamPump(group.stderr, sinks[1].write)];
    this.over = this.#follow(pumps, sinks);
  }

  get status(): BackgroundStatus {
    return this.#status;
  }

  /** What came since the last read. Waits up to `waitMs` for the first byte or the end. */
  async read(waitMs: number): Promise<BackgroundOutput> {
    if (waitMs > 0) await this.#news(waitMs);
    const control = await this.controlNews();
    const total = this.#ring.total;
    const bytes = this.#ring.since(this.#readOffset);
    const cut = total - this.#readOffset > this.#keepBytes ? orphanedHead(bytes) : 0;
    const droppedBytes = total - this.#readOffset - bytes.length + cut;
    this.#readOffset = total;
    const spillPath = total > this.#keepBytes ? this.#spill?.path : undefined;
    return {
      text: bytes.subarray(cut).toString('utf8'),
      droppedBytes,
      status: this.#status,
      ...(spillPath === undefined ? {} : { spillPath }),
      ...control,
    };
  }

  /** What it has made that other programs trust; each find is given once. */
  async controlNews(): Promise<ControlNews> {
    return (await this.#look?.take()) ?? {};
  }

  /** Ends the task. Fulfils when its group is gone and its output is in. */
  async end(graceMs: number): Promise<void> {
    await Promise.all([this.#group.end(graceMs), this.over]);
  }

  async #news(waitMs: number): Promise<void> {
    if (this.#status.state !== 'running' || this.#ring.total > this.#readOffset) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #take(bytes: Buffer): Promise<void> | undefined {
    const before = this.#ring.total;
    const early = before <= this.#keepBytes && before + bytes.length > this.#keepBytes ? this.#ring.since(0) : undefined;
    this.#ring.push(bytes);
    this.#wakeReaders();
    if (this.#ring.total <= this.#keepBytes || this.#spill === undefined) return undefined;
    if (early !== undefined && early.length > 0) void this.#spill.write(early);
    return this.#spill.write(bytes);
  }

  async #follow(pumps: readonly StreamPump[], sinks: readonly WholeCharacters[]): Promise<void> {
    const status = await settleGroup(this.#group, pumps);
    for (const sink of sinks) sink.flush();
    await this.#spill?.close();
    await this.#look?.finish();
    this.#status = { state: 'exited', exitCode: status?.exitCode ?? null, signal: status?.signal ?? null };
    this.#wakeReaders();
  }

  #wakeReaders(): void {
    const readers = this.#wake;
    this.#wake = [];
    for (const wake of readers) wake();
  }
}
