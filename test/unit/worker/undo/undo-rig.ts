/**
 * A session as an undo sees it: real files, a real store of snapshots, the real file tools, and a log in memory.
 */
import { readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Test } from 'tap';
import { ServerError } from '../../../../src/shared/errors.ts';
import type { EventInput, EventType, LogEvent } from '../../../../src/shared/events.ts';
import { rebuiltHistory } from '../../../../src/worker/agent/rebuilt-history.ts';
import { History } from '../../../../src/worker/agent/history.ts';
import { FileObservations, versionOf } from '../../../../src/worker/tools/file-observations.ts';
import { createToolRegistry } from '../../../../src/worker/tools/all-tools.ts';
import { editTool } from '../../../../src/worker/tools/edit.ts';
import { readTool } from '../../../../src/worker/tools/read.ts';
import { removeFile } from '../../../../src/worker/tools/remove-file.ts';
import type { ToolContext, ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { writeTool } from '../../../../src/worker/tools/write.ts';
import { FileSnapshots } from '../../../../src/worker/undo/file-snapshots.ts';
import type { RestoreVerdict } from '../../../../src/worker/undo/restored-files.ts';
import { Rewinder, type RewindOptions } from '../../../../src/worker/undo/rewinder.ts';
import { type SnapshotLimits, SnapshotStore, snapshotLimits } from '../../../../src/worker/undo/snapshot-store.ts';
import type { WorkspaceWatch } from '../../../../src/worker/undo/workspace/workspace-watch.ts';
import type { EditorFiles } from '../../../../src/worker/workspace/editor-files.ts';
import { testContext } from '../tools/tool-context.ts';

const registry = createToolRegistry();
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 0, toolCalls: 0, elapsedMs: 0 };

export class UndoRig {
  readonly cwd: string;
  readonly stateDir: string;
  readonly events: LogEvent[] = [];
  readonly files = new FileObservations();
  store: SnapshotStore;
  history = new History();
  rewinder: Rewinder;
  verdict: (path: string) => RestoreVerdict = () => ({ kind: 'allow' });
  refusal: string | undefined;
  /** The log refuses this event, and what comes after it. */
  failAt: EventType | undefined;
  /** Looks at what commands change. */
  watch: WorkspaceWatch | undefined;
  /** The client's editor, where it has a say. */
  editor: EditorFiles | undefined;
  /** Whether file tools keep what was there. */
  keeps = true;
  readonly #limits: SnapshotLimits;
  #turn = 0;
  #calls = 0;

  constructor(root: string, limits: Partial<SnapshotLimits> = {}) {
    this.cwd = join(root, 'work');
    this.stateDir = join(root, 'state');
    this.#limits = { ...snapshotLimits, ...limits };
    this.store = new SnapshotStore(join(this.stateDir, 'session.d'), this.#limits);
    this.rewinder = this.#makeRewinder();
  }

  static in(t: Test, limits?: Partial<SnapshotLimits>): UndoRig {
    return new UndoRig(realpathSync(t.testdir({ work: {}, outside: {} })), limits);
  }

  /** As another process finds it: nothing in memory but what the log and the disk say. */
  async reopen(): Promise<void> {
    this.failAt = undefined;
    this.store = new SnapshotStore(join(this.stateDir, 'session.d'), this.#limits);
    this.history = new History();
    for (const event of this.events) this.history.apply(event);
    if (this.history.rewinds.isStale) this.history.adopt(await rebuiltHistory(this.history.rewinds.list, this.events.length, this.replay));
    this.files.forgetAll();
    this.rewinder = this.#makeRewinder();
  }

  readonly record = (input: EventInput): LogEvent => {
    if (this.failAt === input.type) throw new ServerError('LOG_WRITE_FAILED', 'the disk is full');
    const event = { ...input, seq: this.events.length, time: 0 } as LogEvent;
    this.events.push(event);
    if (event.type !== 'history/rewound') this.history.apply(event);
    return event;
  };

  readonly replay = async (onEvent: (event: LogEvent) => void): Promise<void> => {
    for (const event of this.events) onEvent(event);
  };

  /** A whole turn; `work` is what its tools do. */
  async turn(prompt: string, work: () => Promise<unknown> = async () => undefined): Promise<number> {
    this.#turn += 1;
    const turn = this.#turn;
    this.record({ type: 'turn/start', data: { turn } });
    this.record({
      type: 'user/message',
      data: { turn, messageId: `u${turn}`, source: 'prompt', content: [{ type: 'text', text: prompt }] },
    });
    await work();
    this.answer(`answer to ${prompt}`);
    this.record({ type: 'turn/end', data: { turn, reason: { kind: 'completed' }, usage } });
    return turn;
  }

  /** As `/compact` does: a turn without a prompt. */
  async summarize(): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    this.record({ type: 'turn/start', data: { turn } });
    const throughSeq = this.events.length - 2;
    this.record({ type: 'history/compacted', data: { throughSeq, summary: 'all of it' } });
    this.record({ type: 'turn/end', data: { turn, reason: { kind: 'completed' }, usage } });
  }

  answer(text: string, callIds: readonly string[] = [], name = 'read'): void {
    const toolCalls = callIds.map((callId) => ({ callId, name, arguments: '{}' }));
    const data = {
      turn: this.#turn,
      step: 1,
      messageId: `a${this.events.length}`,
      text,
      reasoning: '',
      toolCalls,
      finish: 'stop' as const,
    };
    this.record({ type: 'assistant/message', data });
  }

  /** The write tool, on a file that the session has just read. */
  write(path: string, content: string): Promise<ToolOutcome> {
    return this.#call('write', { file_path: path, content }, (context, args) => writeTool.execute(args, context));
  }

  edit(path: string, old: string, replacement: string): Promise<ToolOutcome> {
    return this.#call('edit', { file_path: path, old_string: old, new_string: replacement }, (context, args) =>
      editTool.execute(args, context),
    );
  }

  /** As a tool would that removes files. */
  remove(path: string): Promise<ToolOutcome> {
    return this.#call('remove', { file_path: path }, async (context) => {
      const absolute = join(this.cwd, path);
      await removeFile({ path: absolute, shownPath: path, expected: versionOf(statSync(absolute)) }, context);
      return { text: 'Removed.', isError: false };
    });
  }

  /** A command, which changes what it likes. */
  command(command: string, effect: () => void = () => undefined): Promise<ToolOutcome> {
    return this.#call('bash', { command }, async ({ callId, signal }) => {
      const run = async (): Promise<ToolOutcome> => {
        effect();
        return { text: '', isError: false };
      };
      if (this.watch === undefined) return await run();
      return await this.watch.around({ turn: this.#turn, callId, signal, record: this.record }, run);
    });
  }

  options(more: Partial<RewindOptions> = {}): RewindOptions {
    return { files: true, force: false, signal: new AbortController().signal, ...more };
  }

  undo(prompts = 1, more?: Partial<RewindOptions>) {
    return this.rewinder.undo(prompts, this.options(more));
  }

  redo(more?: Partial<RewindOptions>) {
    return this.rewinder.redo(this.options(more));
  }

  put(path: string, content: string): void {
    writeFileSync(join(this.cwd, path), content);
  }

  read(path: string): string {
    return readFileSync(join(this.cwd, path), 'utf8');
  }

  /** Every file and every directory below the working directory. */
  tree(): Record<string, string> {
    const found: Record<string, string> = {};
    for (const entry of readdirSync(this.cwd, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      found[relative(this.cwd, path)] = entry.isDirectory() ? '<directory>' : readFileSync(path, 'utf8');
    }
    return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** What the model is told, as one line a message. */
  said(): string[] {
    return this.history.messages().map((message) => `${message.role}: ${message.text}`);
  }

  async #call<A extends object>(
    name: string,
    args: A,
    run: (context: ReturnType<typeof testContext>, args: A) => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    this.#calls += 1;
    const callId = `c${this.#calls}`;
    const turn = this.#turn;
    const common = { turn, step: 1, callId };
    this.answer('on it', [callId], name);
    this.record({ type: 'tool/call', data: { ...common, name, arguments: JSON.stringify(args) } });
    this.record({ type: 'tool/start', data: common });
    const log = { record: this.record, barrier: async () => undefined };
    const snapshots = new FileSnapshots(this.store);
    const context = testContext(this.cwd, {
      callId,
      files: this.files,
      ...(this.editor === undefined ? {} : { editor: this.editor }),
      ...(this.keeps
        ? {
            keepBefore: (change) => snapshots.keep(change, { turn, callId }, log),
            noteActual: (change) => snapshots.noteActual(change, { turn, callId }, log),
          }
        : {}),
    });
    if (this.editor !== undefined && 'file_path' in args) await readTool.execute(args as { file_path: string }, context);
    else this.#see(args);
    const outcome = await run(context, args);
    this.record({ type: 'tool/result', data: { ...common, ...outcome } });
    return outcome;
  }

  #see(args: object): void {
    if (!('file_path' in args) || typeof args.file_path !== 'string') return;
    const path = join(this.cwd, args.file_path);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) this.files.observe(path, versionOf(stats));
  }

  /** Asked for late: a test may open its editor first. */
  #fileParts(): Pick<ToolContext, 'files' | 'editor'> {
    const editorOf = (): EditorFiles | undefined => this.editor;
    return {
      files: this.files,
      get editor() {
        return editorOf() as EditorFiles;
      },
    };
  }

  #makeRewinder(): Rewinder {
    return new Rewinder({
      cwd: this.cwd,
      replay: this.replay,
      record: this.record,
      barrier: async () => undefined,
      history: this.history,
      historyAt: (base) => rebuiltHistory(this.history.rewinds.list, base, this.replay),
      store: this.store,
      snapshots: new FileSnapshots(this.store),
      context: this.#fileParts(),
      mayWrite: async (path) => this.verdict(path),
      refusesWrites: () => this.refusal,
      accessOf: (name, args) => registry.get(name)?.access(args, { cwd: this.cwd }),
    });
  }
}
