/**
 * What makes the work of a session undoable: where contents are kept, and who takes things back. Made with the session;
 * touches no disk until a file is changed.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ServerError } from '../../shared/errors.ts';
import type { LogEvent, PermissionMode } from '../../shared/events.ts';
import { refusedByMode } from '../../shared/permission/mode-policy.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { RewindOutcome, RewindRequest } from '../../shared/undo-protocol.ts';
import type { AgentDependencies } from '../agent/agent-context.ts';
import type { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import type { SessionTools } from '../agent/session-tools.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';
import { FileObservations } from '../tools/file-observations.ts';
import { FileSnapshots } from '../undo/file-snapshots.ts';
import { outcomeText } from '../undo/outcome-text.ts';
import { Rewinder } from '../undo/rewinder.ts';
import { SnapshotStore } from '../undo/snapshot-store.ts';
import { GitTree } from '../undo/workspace/git-tree.ts';
import { WorkspaceWatch } from '../undo/workspace/workspace-watch.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

export interface UndoSessionParts {
  readonly journal: SessionJournal;
  readonly permissions: SessionPermissions;
  readonly agent: ReactLoopAgent;
  readonly tools: SessionTools;
}

export class SessionUndo {
  /** What the session has seen of files: an undo makes it look again. */
  readonly files = new FileObservations();
  /** What the agent keeps of changes, by the setting. */
  readonly keepers: Pick<AgentDependencies, 'snapshots' | 'workspaceWatch'>;
  readonly #task: SessionTask;
  readonly #agent: () => ReactLoopAgent;
  readonly #makeRewinder: () => Rewinder;
  readonly #left = new AbortController();
  #rewinder: Rewinder | undefined;
  #running: Promise<unknown> | undefined;

  /** @param parts asked for when they are needed: the agent is made with what stands here */
  constructor(task: SessionTask, thread: Pick<ThreadContext, 'broker'>, parts: () => UndoSessionParts) {
    const store = new SnapshotStore(task.spillDir);
    const snapshots = new FileSnapshots(store);
    this.#task = task;
    this.keepers = keepersFor(task, thread, { store, snapshots });
    this.#agent = () => parts().agent;
    this.#makeRewinder = () => {
      const { cwd } = task;
      const { journal, permissions, agent, tools } = parts();
      return new Rewinder({
        cwd,
        replay: (onEvent) => journal.replay(onEvent),
        record: (event) => {
          const logged = journal.append(event);
          if (logged.type === 'history/rewound') agent.noteUndo(logged);
          return logged;
        },
        barrier: () => journal.barrier(),
        history: agent.history,
        historyAt: (base) => agent.historyAt(base, (onEvent) => journal.replay(onEvent)),
        store,
        // An undo keeps what it overwrites, whatever the tools do.
        snapshots,
        context: agent.fileParts,
        mayWrite: (path) => permissions.verdictOnUndo(path),
        refusesWrites: () => refusalIn(permissions.mode),
        accessOf: (name, args) => tools.get(name)?.access(args, { cwd }),
      });
    };
  }

  get rewinder(): Rewinder {
    this.#rewinder ??= this.#makeRewinder();
    return this.#rewinder;
  }

  /** Whether {@link rewindTo} is at work. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** After the log was read: makes the model's history anew where a rewind went further back than memory. @throws ServerError LOG_CORRUPT */
  async settleHistory(log: { replay(onEvent: (event: LogEvent) => void): Promise<void> }): Promise<void> {
    const agent = this.#agent();
    const { history } = agent;
    if (history.rewinds.isStale) history.adopt(await agent.historyAt(Infinity, (onEvent) => log.replay(onEvent)));
  }

  /**
   * Goes back to before the prompt of a message, and says so in the conversation. No turn may be started meanwhile.
   *
   * @param isBusy whether the session is at something else
   * @throws ServerError SESSION_BUSY; INVALID_PARAMS for a message that is no part of the conversation; SHUTTING_DOWN; as {@link Rewinder.undo}
   */
  async rewindTo(request: RewindRequest, isBusy: boolean): Promise<RewindOutcome> {
    if (this.#left.signal.aborted) throw new ServerError('SHUTTING_DOWN', 'The session is leaving its thread.');
    if (isBusy) throw new ServerError('SESSION_BUSY', 'A prompt or an undo of this session is running.');
    const work = this.#rewindTo(request);
    this.#running = work;
    try {
      return await work;
    } catch (error) {
      throw this.#left.signal.aborted
        ? new ServerError('SHUTTING_DOWN', 'The session left its thread. Ask again to complete the undo.')
        : error;
    } finally {
      this.#running = undefined;
    }
  }

  /** Stops a rewind between two files. Fulfils when it has stopped; never rejects. */
  async dispose(): Promise<void> {
    this.#left.abort();
    // Whoever asked for it hears what became of it.
    await this.#running?.then(undefined, () => undefined);
  }

  async #rewindTo({ messageId, files, force }: RewindRequest): Promise<RewindOutcome> {
    const note = (outcome: RewindOutcome): string => outcomeText(outcome, { cwd: this.#task.cwd, filesAsked: files });
    const options = { files, force, note, signal: this.#left.signal };
    const outcome = await this.rewinder.rewind((timeline) => timeline.turnOf(messageId), options);
    if (outcome !== undefined) return outcome;
    throw new ServerError('INVALID_PARAMS', 'messageId is that of no message of the conversation as it stands.', {
      data: { field: 'messageId' },
    });
  }
}

function keepersFor(
  { settings, sessionId, cwd, spillDir }: SessionTask,
  { broker }: Pick<ThreadContext, 'broker'>,
  { store, snapshots }: { readonly store: SnapshotStore; readonly snapshots: FileSnapshots },
): SessionUndo['keepers'] {
  if (settings.undo === 'off') return {};
  if (settings.undo === 'files') return { snapshots };
  const tree = new GitTree({ broker, owner: sessionId, gitDir: join(spillDir, 'workspace.git'), cwd, newId: randomUUID });
  return { snapshots, workspaceWatch: new WorkspaceWatch({ cwd, tree, store, scratchDir: join(spillDir, 'workspace.old') }) };
}

function refusalIn(mode: PermissionMode): string | undefined {
  if (refusedByMode(mode, { kind: 'write', paths: [] }) === undefined) return undefined;
  return `Nothing was done: in the mode "${mode}" no file is changed. Change the mode, or leave the files as they are (--no-files, "files": false).`;
}
