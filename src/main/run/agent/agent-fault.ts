/** What can go wrong with an agent, in the classes of a result, and whether another try may help. */
import { RequestError } from '@agentclientprotocol/sdk';
import type { ErrorClass } from '../job-result.ts';

const longestMessage = 2_000;

export class AgentFault extends Error {
  readonly errorClass: ErrorClass;
  /** Whether the same may succeed another time. */
  readonly retryable: boolean;
  /** A key is missing, wrong or out of money: until a person does something, every job will come to the same. */
  readonly needsPerson: boolean;
  /** What the agent said with its error. */
  readonly data: unknown;

  constructor(errorClass: ErrorClass, message: string, options: { retryable: boolean; needsPerson?: boolean; data?: unknown }) {
    super(message.length > longestMessage ? `${message.slice(0, longestMessage)}…` : message);
    this.errorClass = errorClass;
    this.retryable = options.retryable;
    this.needsPerson = options.needsPerson ?? false;
    this.data = options.data;
  }
}

/** The reasons of MODEL_FAILED that pass with time. */
const busyReasons = new Set(['RATE_LIMIT', 'TIMEOUT']);
const passingReasons = new Set(['SERVER', 'TRANSPORT', 'STREAM_CLOSED', 'MALFORMED_RESPONSE', 'EMPTY_RESPONSE']);

type Verdict = readonly [ErrorClass, boolean];

/** By our own catalogue's word, which this server puts into `data.code`. */
const byCode: Readonly<Record<string, Verdict>> = {
  OVERLOADED: ['busy', true],
  SESSION_BUSY: ['busy', true],
  THREAD_LOST: ['lost', true],
  TURN_INTERRUPTED: ['lost', true],
  SHUTTING_DOWN: ['lost', true],
  ATTACH_FAILED: ['lost', true],
  SESSION_FAILED: ['agent', true],
  AUTH_REQUIRED: ['model', false],
  LOG_WRITE_FAILED: ['agent', false],
  LOG_CORRUPT: ['agent', false],
  INTERNAL: ['internal', false],
};

/** By JSON-RPC's number, for agents with words of their own. */
const byNumber: Readonly<Record<number, Verdict>> = {
  [-32602]: ['request', false],
  [-32601]: ['agent', false],
  [-32600]: ['agent', false],
  [-32000]: ['agent', false],
  [-32002]: ['lost', true],
  [-32800]: ['lost', true],
};

function member(data: unknown, name: string): unknown {
  return typeof data === 'object' && data !== null ? (data as Record<string, unknown>)[name] : undefined;
}

function verdictOf({ code, data }: RequestError): Verdict {
  const word = member(data, 'code');
  if (word === 'MODEL_FAILED') {
    const reason = member(data, 'reason');
    if (typeof reason === 'string' && busyReasons.has(reason)) return ['busy', true];
    return ['model', typeof reason === 'string' && passingReasons.has(reason)];
  }
  // Agents answer -32603 to whatever went wrong, their model's failures too.
  return (typeof word === 'string' ? byCode[word] : undefined) ?? byNumber[code] ?? ['agent', true];
}

/** ACP's own number for a client that has to authenticate, and the reason of HTTP 402. */
function needsPerson({ code, data }: RequestError): boolean {
  return code === -32000 || member(data, 'code') === 'AUTH_REQUIRED' || member(data, 'reason') === 'QUOTA';
}

/** @param lost what to say when the connection has ended, which the SDK reports as a plain error */
export function toAgentFault(error: unknown, lost: () => string): AgentFault {
  if (error instanceof AgentFault) return error;
  if (!(error instanceof RequestError)) return new AgentFault('lost', lost(), { retryable: true });
  const [errorClass, retryable] = verdictOf(error);
  const details = member(error.data, 'details');
  // Ours repeats the message there, with a hint for whoever started the server.
  const more = typeof details === 'string' && !details.startsWith(error.message) ? ` ${details}` : '';
  return new AgentFault(errorClass, `${error.message}${more}`, { retryable, needsPerson: needsPerson(error), data: error.data });
}
