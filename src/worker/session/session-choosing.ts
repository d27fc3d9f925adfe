/**
 * What lets a session be changed while it runs: its choices, the way out of plan mode, and what the model hears of both.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { LogEvent, PermissionMode } from '../../shared/events.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import { planToolName } from '../../shared/tool-names.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { PlanNotices } from '../agent/plan-notices.ts';
import type { ModelAdapter } from '../model/model-adapter.ts';
import { PlanApproval } from '../permission/plan-approval.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';
import type { Projector } from '../projection/projector.ts';
import { tellOfBackground } from './background-notice.ts';
import { ChosenSettings } from './chosen-settings.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

export interface SessionChoosingParts {
  readonly journal: SessionJournal;
  readonly permissions: SessionPermissions;
  readonly projector: Projector;
  readonly model: ModelAdapter;
  /** The number of the running turn. */
  readonly turn: () => number;
}

/**
 * Whether a session has the tool that puts a plan to a person. One that works for another has nobody to ask; a program gives
 * the mode with the session, so it is offered the tool only where it began with planning.
 */
export function offersPlan({ audience, settings, options }: SessionTask): boolean {
  if (audience !== undefined) return false;
  return settings.profile === 'editor' || (options.mode ?? settings.mode) === 'plan';
}

export class SessionChoosing {
  readonly chosen: ChosenSettings;
  /** Absent where no plan can be put to a person. */
  readonly plan: PlanApproval | undefined;
  readonly #notices: PlanNotices;
  /** What the person had to be told of the last mode was said. */
  #told: Promise<void> = Promise.resolve();

  constructor(task: SessionTask, { main, outbox, broker }: ThreadContext, parts: SessionChoosingParts) {
    const { sessionId, settings, options, client, audience } = task;
    const { journal, permissions, projector, model, turn } = parts;
    this.chosen = new ChosenSettings({
      settings,
      journal,
      permissions,
      model,
      // A main that is gone takes this thread with it.
      report: (chosen: Chosen) => void main.reportChosen(sessionId, chosen).catch(() => undefined),
    });
    if (settings.profile === 'editor' && audience === undefined) {
      const show = (update: SessionUpdate): void => outbox.send(projector.frame(update));
      const notice = { sessionId, broker, notices: client.notices === true, show };
      permissions.onModeSet(() => {
        this.#told = tellOfBackground(permissions.mode, notice);
      });
    }
    const hasTool = offersPlan(task) && (options.tools?.includes(planToolName) ?? true);
    this.#notices = new PlanNotices(hasTool);
    const { control } = this.chosen;
    this.plan = offersPlan(task)
      ? new PlanApproval({
          sessionId,
          timeoutMs: settings.permissionTimeoutMs,
          mode: () => permissions.mode,
          setMode: (mode) => control.setMode(mode),
          turn,
          journal,
          ask: (request) => main.requestPermission(request),
          withdraw: (requestKey) => main.withdrawPermission(sessionId, requestKey),
          flush: () => outbox.flush(),
          toolCall: (call) => projector.permissionToolCall(call),
        })
      : undefined;
  }

  /** Fulfils once the person was told what the mode leaves running. @throws ServerError LOG_WRITE_FAILED; the mode is as before then */
  async setMode(mode: PermissionMode): Promise<void> {
    this.chosen.setMode(mode);
    await this.#told;
  }

  /** An event of the stored log; all of them, in order. */
  observe(event: LogEvent): void {
    this.chosen.observe(event);
    this.#notices.observe(event);
  }

  /** An event that was logged just now. */
  noteLogged(event: LogEvent): void {
    this.#notices.observe(event);
  }

  /** What the model has to hear before its next step. */
  nextNotice(): string | undefined {
    return this.#notices.next(this.chosen.current.mode);
  }

  /** For a session without a past. @throws ServerError LOG_WRITE_FAILED */
  begin({ options, choices = {} }: Pick<SessionTask, 'options' | 'choices'>): void {
    this.chosen.begin(options.mode, choices);
  }
}
