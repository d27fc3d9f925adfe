/**
 * The question every tool call must pass before its body runs. Fails closed: anything but a clear yes is a no.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { ToolCallView } from '../../shared/render-intents.ts';
import type { ToolAccess } from '../tools/tool.ts';

export interface PermissionCall {
  readonly turn: number;
  readonly callId: string;
  readonly toolName: string;
  readonly access: ToolAccess;
  readonly view: ToolCallView;
  readonly rawInput: JsonValue;
}

/** What a command is allowed with only, and what it was given. */
export interface CommandBounds {
  readonly network?: 'none' | 'any';
  readonly sandbox?: 'required';
  /** No person said yes to it now: what it makes that other programs trust is taken away again. */
  readonly unasked?: true;
}

/** `text` is what the model reads as the call's result. */
export type PermissionDecision =
  /** What binds whoever runs the call: its commands get no network, or run in a sandbox, or do not start. */
  | ({ readonly allowed: true } & CommandBounds)
  | {
      readonly allowed: false;
      readonly code: 'PERMISSION_DENIED' | 'PERMISSION_CANCELLED' | 'PERMISSION_UNAVAILABLE';
      readonly text: string;
    };

export interface PermissionGate {
  /** Never rejects. Ends with PERMISSION_CANCELLED soon after `signal` aborts. */
  decide(call: PermissionCall, signal: AbortSignal): Promise<PermissionDecision>;
}
