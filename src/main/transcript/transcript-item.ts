/**
 * What a session's log says to a person, piece by piece: the same for a page and for a terminal. Plain data; how a piece looks is up to
 * whoever shows it.
 */
import type { EventData, PromptBlock } from '../../shared/events.ts';
import type { Html } from './html.ts';

/** A call of a tool, from the moment it was taken up. */
export interface CallRecord {
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
  /** What the log says of the tool, where it is one of an MCP server. */
  readonly mcp: McpOrigin | undefined;
  startedAt: number | undefined;
  endedAt: number | undefined;
  result: EventData['tool/result'] | undefined;
  /** Questions, decisions, subagents' doings, in order. */
  readonly lines: EventLine[];
}

export interface McpOrigin {
  readonly server: string;
  readonly tool: string;
  readonly kind: 'read' | 'fetch' | 'other';
}

/** One line. A terminal shows the same words without their tags. */
export interface EventLine {
  readonly line: Html;
  /** What a person should not overlook. */
  readonly bad: boolean;
}

export type TranscriptItem =
  | { readonly kind: 'turn'; readonly data: EventData['turn/start']; readonly time: number }
  | {
      readonly kind: 'turn-end';
      readonly data: EventData['turn/end'];
      readonly elapsedMs: number;
      readonly context: EventData['step/end']['context'];
    }
  | {
      readonly kind: 'said';
      readonly who: string;
      readonly content: readonly PromptBlock[];
      readonly typed: readonly PromptBlock[] | undefined;
    }
  | { readonly kind: 'command'; readonly data: EventData['command/run'] }
  | { readonly kind: 'answer'; readonly data: EventData['assistant/message']; readonly tookMs: number | undefined }
  /** Text that streamed and was never committed. */
  | { readonly kind: 'partial'; readonly what: string; readonly text: string }
  | { readonly kind: 'call'; readonly call: CallRecord }
  | { readonly kind: 'plan'; readonly data: EventData['todo/write'] }
  | { readonly kind: 'header'; readonly data: EventData['request/header'] }
  | { readonly kind: 'summary'; readonly data: EventData['history/compacted'] }
  | { readonly kind: 'rewound'; readonly data: EventData['history/rewound'] }
  | ({ readonly kind: 'event' } & EventLine);
