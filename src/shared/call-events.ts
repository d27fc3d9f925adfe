/**
 * Payloads of the events that tell of a tool call beyond its own beginning and end: the question about it, and the subagent
 * that it started.
 */
import type { JsonValue } from './errors.ts';
import type { SubagentActivity, SubagentStopReason, SubagentUsage } from './subagent-protocol.ts';

export interface CallEvents {
  'permission/asked': { readonly turn: number; readonly callId: string; readonly title: string };
  'permission/decided': {
    readonly turn: number;
    readonly callId: string;
    /** `always` holds in the workspace until it is taken back, `session` in this session. */
    readonly outcome:
      | 'allow-once'
      | 'allow-session'
      | 'allow-always'
      | 'reject'
      | 'reject-session'
      | 'reject-always'
      | 'cancelled'
      | 'unavailable';
    /** What decided: the client, the mode, an answer given earlier (`grant`), a timeout, a rule of a policy. */
    readonly by: 'client' | 'mode' | 'grant' | 'timeout' | 'policy';
    /** The rule that decided, or that had the client asked. */
    readonly rule?: string;
    /** What a lasting answer binds to, for example the exact command. */
    readonly grant?: string;
  };
  /** A remote session is ready and has its prompt. */
  'subagent/start': {
    readonly turn: number;
    /** The tool call that started it. */
    readonly callId: string;
    readonly runId: string;
    readonly provider: string;
    /** The call's own words for the task. */
    readonly description?: string;
    readonly cwd: string;
    readonly background: boolean;
    /** The log of a child that is a session of this server. */
    readonly logPath?: string;
  };
  'subagent/activity': {
    readonly callId: string;
    readonly runId: string;
    readonly activity: SubagentActivity;
    /** More of the same moment follows in the next event: whoever shows the run can wait for it. */
    readonly more?: true;
  };
  'subagent/end': {
    readonly callId: string;
    readonly runId: string;
    readonly stopReason: SubagentStopReason;
    readonly durationMs: number;
    readonly usage?: SubagentUsage;
    readonly diagnostic?: string;
    /** What a background run gave, to be read later, clipped as its reader gets it; that of a foreground run is its call's result. */
    readonly output?: string;
    /** The structured answer of a background run. */
    readonly structured?: JsonValue;
    /** Activity beyond the bound of one run, which was not logged. */
    readonly unlogged?: number;
    /** The log of a child that is a session of this server. */
    readonly logPath?: string;
  };
}
