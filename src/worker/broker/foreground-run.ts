/**
 * One command that somebody waits for: its output, its time limit, its end.
 */
import type { RunOutput, RunRequest, RunResult, SpawnFailure } from '../../shared/broker-protocol.ts';
import { OutputCapture } from './output-capture.ts';
import type { Launch, ProcessGroup } from './process-group.ts';
import { settleGroup } from './settle-group.ts';
import { ShownOutput } from './shown-output.ts';
import { SpillFile } from './spill-file.ts';
import { StreamPump } from './stream-pump.ts';
import { within } from './within.ts';

/** TERM to KILL. Somebody waits for a cancel; a time limit leaves room to clean up. */
export const cancelGraceMs = 300;
export const timeoutGraceMs = 2000;
/** Where a spill file stops growing unless the caller says otherwise. */
export const defaultSpillMaxBytes = 64 * 1024 * 1024;

/** For the look behind a command, on a file system that may hang. */
export const guardMs = 5_000;

export class ForegroundRun {
  readonly owner: string;
  /** Fulfils once the group is gone. Never rejects. */
  readonly result: Promise<RunResult>;
  readonly #request: RunRequest;
  readonly #stdout: OutputCapture;
  readonly #stderr: OutputCapture;
  /** Both streams as they come; absent where nobody wants to see them. */
  readonly #shown: ShownOutput | undefined;
  readonly #startedAt = performance.now();
  #group: ProcessGroup | undefined;
  #cancelled = false;
  #timedOut = false;

  constructor(request: RunRequest, launch: Promise<Launch>) {
    this.owner = request.owner;
    this.#request = request;
    this.#stdout = captureFor(request);
    this.#stderr = captureFor(request);
    this.#shown = request.showBytes === undefined ? undefined : new ShownOutput(request.showBytes);
    this.result = this.#follow(launch);
  }

  /** Ends the command; the result comes as ever, with `cancelled` set. */
  cancel(): void {
    this.#cancelled = true;
    void this.#group?.end(cancelGraceMs);
  }

  /** As the broker's `readRun`. */
  async read(waitMs: number): Promise<RunOutput | undefined> {
    return await this.#shown?.read(waitMs);
  }

  async #follow(launch: Promise<Launch>): Promise<RunResult> {
    const launched = await launch;
    if (!launched.ok) return await this.#result({ exitCode: null, signal: null }, failureOf(launched));
    const { group, guard, networkOff } = launched;
    this.#group = group;
    const pumps = [
      new StreamPump(group.stdout, (chunk) => {
        this.#shown?.stdout(chunk);
        return this.#stdout.write(chunk);
      }),
      new StreamPump(group.stderr, (chunk) => {
        this.#shown?.stderr(chunk);
        return this.#stderr.write(chunk);
      }),
    ];
    if (this.#cancelled) void group.end(cancelGraceMs);
    const timer = this.#armTimeout(() => {
      if (group.hasExited || this.#cancelled) return;
      this.#timedOut = true;
      void group.end(timeoutGraceMs);
    });
    const status = await settleGroup(group, pumps);
    clearTimeout(timer);
    const contained = guard === undefined ? {} : { contained: true as const, ...(await within(guard.news(), guardMs, {})) };
    const more = { ...contained, ...(networkOff === undefined ? {} : { networkOff }) };
    return await this.#result(status ?? { exitCode: null, signal: null }, more);
  }

  #armTimeout(expire: () => void): NodeJS.Timeout | undefined {
    const { timeoutMs } = this.#request;
    // Longer than a timer can count means no limit; setTimeout would take it for 1 ms.
    return timeoutMs > 0 && timeoutMs < 2 ** 31 ? setTimeout(expire, timeoutMs) : undefined;
  }

  async #result(status: { exitCode: number | null; signal: string | null }, more: Partial<RunResult>): Promise<RunResult> {
    const [stdout, stderr, shown] = await Promise.all([this.#stdout.finish(), this.#stderr.finish(), this.#shown?.finish()]);
    return {
      exitCode: status.exitCode,
      signal: status.signal,
      timedOut: this.#timedOut,
      cancelled: this.#cancelled,
      ...more,
      stdout,
      stderr,
      ...shown,
      durationMs: performance.now() - this.#startedAt,
    };
  }
}

function failureOf({ spawnError, spawnCode }: SpawnFailure): Partial<RunResult> {
  return { spawnError, ...(spawnCode === undefined ? {} : { spawnCode }) };
}

function captureFor(request: RunRequest): OutputCapture {
  const { keepBytes, spillDir, spillMaxBytes = defaultSpillMaxBytes } = request;
  return new OutputCapture(keepBytes, spillDir === undefined ? undefined : new SpillFile(spillDir, spillMaxBytes));
}
