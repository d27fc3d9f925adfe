/**
 * The projection: what a client sees of a session's events. The one place where events become ACP updates.
 *
 * The same function runs for a live session and for a replayed log, so a loaded session looks like the live one. Two
 * differences are asked for: a live prompt is not echoed to the client that sent it, and streamed text takes a short cut
 * ({@link Projector.chunkFrame}) that gives the same update. Reads no clock, no file and no setting beside its options.
 */
import type { SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { Profile } from '../../shared/config.ts';
import type { EventInput } from '../../shared/events.ts';
import type { ArgumentsDraft } from '../../shared/render-intents.ts';
import type { ClientTraits } from '../../shared/thread-protocol.ts';
import type { PermissionCall } from '../permission/permission-gate.ts';
import { mcpUpdates } from './mcp-updates.ts';
import { PlanView } from './plan-view.ts';
import { titleUpdates, usageUpdates } from './session-updates.ts';
import { commandUpdates, retryUpdates, rewoundUpdates, textUpdates, userUpdates } from './text-updates.ts';
import { ChoiceUpdates, type ChoiceViewSettings } from './choice-updates.ts';
import { SubagentCards } from './subagent-card.ts';
import { ToolCards, type ToolPresenter } from './tool-cards.ts';
import { type ChunkKind, UpdateFrames } from './update-frame.ts';

export interface ProjectorOptions {
  readonly sessionId: string;
  /** The session's canonical working directory. */
  readonly cwd: string;
  readonly profile: Profile;
  readonly client: ClientTraits;
  /** Looks a tool's presentation up by the tool's name. */
  readonly tools: (toolName: string) => ToolPresenter | undefined;
  /** What can be chosen for the session; absent where the client is told of the mode alone. */
  readonly settings?: ChoiceViewSettings;
  /** True for a log that is shown again: prompts are then part of what is shown. */
  readonly replay?: boolean;
}

export class Projector {
  readonly #profile: Profile;
  readonly #replay: boolean;
  readonly #terminalOutput: boolean;
  readonly #notices: boolean;
  readonly #frames: UpdateFrames;
  readonly #cards: ToolCards;
  readonly #subagents = new SubagentCards();
  readonly #plan = new PlanView();
  readonly #choices: ChoiceUpdates | undefined;

  constructor(options: ProjectorOptions) {
    this.#profile = options.profile;
    this.#replay = options.replay ?? false;
    this.#notices = options.client.notices === true;
    this.#frames = new UpdateFrames(options.sessionId);
    if (options.settings !== undefined) this.#choices = new ChoiceUpdates(options.settings, options.client.booleanOptions === true);
    // Without cards on the wire no terminal was ever announced.
    this.#terminalOutput = options.client.terminalOutput && options.profile === 'editor';
    this.#cards = new ToolCards({
      cwd: options.cwd,
      terminalOutput: this.#terminalOutput,
      presenterOf: options.tools,
    });
  }

  /** Takes in an event of the stored log that is not to be shown: what comes next builds on it. */
  learn(event: EventInput): void {
    this.#plan.learn(event);
    this.#choices?.learn(event);
  }

  /** Whether streamed text, drafts of calls and running output are shown. */
  get showsLive(): boolean {
    return this.#profile === 'editor';
  }

  /** Milliseconds between two pieces of a running command's output: a terminal takes additions, a text is replaced as a whole. */
  get outputPaceMs(): number {
    return this.#terminalOutput ? 80 : 500;
  }

  /** The updates of one event, in order. Events must come in the order of the log. */
  project(event: EventInput): SessionUpdate[] {
    return this.#profile === 'editor' ? this.#projectForEditor(event) : projectForAutomation(event);
  }

  /** An update as a line of the wire, LF included. */
  frame(update: SessionUpdate): string {
    return this.#frames.frame(update);
  }

  /** {@link project} and {@link frame} together. */
  projectFrames(event: EventInput): string[] {
    return this.project(event).map((update) => this.#frames.frame(update));
  }

  /** A call that the model still writes. Live only: the answer that is logged shows it again, whole. */
  draft(callId: string, toolName: string, args: ArgumentsDraft): SessionUpdate[] {
    return this.#profile === 'editor' ? this.#cards.draft(callId, toolName, args) : [];
  }

  /** What a running command writes. Live only: the result that is logged has it, too. */
  output(callId: string, text: string): SessionUpdate[] {
    return this.#profile === 'editor' ? this.#cards.output(callId, text) : [];
  }

  /** Ends as failed whatever card is open, for a log that breaks off in the middle of a turn. */
  endCards(): SessionUpdate[] {
    return this.#profile === 'editor' ? this.#cards.endAll() : [];
  }

  /** The hot path of `assistant/chunk`: its frame, or an empty string where the profile shows no streamed text. */
  chunkFrame(kind: ChunkKind, messageId: string, text: string): string {
    if (this.#profile !== 'editor' || text === '' || (kind === 'reasoning' && this.#hidesThoughts)) return '';
    return this.#frames.chunk(kind, messageId, text);
  }

  /** The `toolCall` of a `session/request_permission`, complete in itself. `reason` says why the call is asked about. */
  permissionToolCall(call: PermissionCall, reason?: string): ToolCallUpdate {
    return this.#cards.permissionToolCall(call, reason);
  }

  get #hidesThoughts(): boolean {
    return this.#choices?.showsThoughts === false;
  }

  #projectForEditor(event: EventInput): SessionUpdate[] {
    switch (event.type) {
      case 'assistant/chunk': {
        if (event.data.kind === 'reasoning' && this.#hidesThoughts) return [];
        const kind = event.data.kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk';
        return textUpdates(kind, event.data.messageId, event.data.text);
      }
      case 'user/message':
        // A prompt's place is known to whoever sent it; that of a message into the running turn is known only now.
        return event.data.source === 'steer' || (this.#replay && event.data.source === 'prompt') ? userUpdates(event.data) : [];
      case 'history/rewound':
        return [...rewoundUpdates(event.data), ...this.#plan.take(event)];
      case 'command/run':
        return commandUpdates(event.data, this.#replay);
      case 'tool/call':
        return this.#cards.call(event.data);
      case 'tool/start':
        return this.#cards.start(event.data.callId);
      case 'tool/result':
        return this.#cards.result(event.data);
      case 'todo/write':
        return this.#plan.take(event);
      case 'mode/change':
        return this.#choices?.show(event) ?? [{ sessionUpdate: 'current_mode_update', currentModeId: event.data.mode }];
      case 'options/change':
        return this.#choices?.show(event) ?? [];
      case 'assistant/message':
        return this.#cards.answer(event.data.toolCalls);
      case 'llm/retry':
        return [...this.#cards.endDrafts('Discarded: the model is asked again.'), ...retryUpdates(event.data)];
      case 'subagent/start':
        this.#subagents.start(event.data);
        return [];
      case 'subagent/activity':
        return this.#progress(event.data.callId, this.#subagents.activity(event.data));
      case 'subagent/end':
        this.#subagents.end(event.data);
        return [];
      // A question about a call that runs already is one of its child: until now the card has shown that.
      case 'permission/decided':
        return this.#cards.restore(event.data.callId, this.#subagents.shown(event.data.callId));
      // A start closes what a turn without an end left behind.
      case 'turn/start':
        this.#subagents.endAll();
        return [...this.#cards.begin(), ...this.#plan.take(event)];
      case 'turn/end':
        this.#subagents.endAll();
        return [...this.#cards.endAll(), ...this.#plan.take(event)];
      case 'thread/attached':
      // Logged when the wait is over.
      case 'llm/wait':
      // The question is a request of its own; the answer shows in what happens to the call.
      case 'permission/asked':
      case 'step/start':
      case 'request/header':
      case 'history/pruned':
      case 'instructions/read':
      case 'file/snapshot':
      case 'undo/start':
      case 'workspace/observed':
        return [];
      case 'step/end':
      case 'history/compacted':
        return usageUpdates(event.data.context);
      case 'mcp/status':
        // News of a moment, and none of the history: an opening tells of its own.
        return this.#replay ? [] : mcpUpdates(event.data, seqOf(event), this.#notices);
      case 'session/title':
        return titleUpdates(event.data, 'time' in event ? event.time : undefined);
      default:
        // An event of a newer log has no view here. The lint rule for switches keeps the list above complete.
        return [];
    }
  }

  #progress(callId: string, text: string | undefined): SessionUpdate[] {
    return text === undefined || text === '' ? [] : this.#cards.progress(callId, text);
  }
}

/** Events of a log have one. */
function seqOf(event: EventInput & { readonly seq?: number }): number | undefined {
  return event.seq;
}

function projectForAutomation(event: EventInput): SessionUpdate[] {
  if (event.type !== 'assistant/message') return [];
  return textUpdates('agent_message_chunk', event.data.messageId, event.data.text);
}
