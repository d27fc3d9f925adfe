/**
 * The one catalogue of errors.
 *
 * Every error that leaves this program has a code from here: a stable word for programs, a JSON-RPC number for the
 * wire, and a sentence for people that says what was expected, what came, and what to do. README's table of errors is
 * checked against this file by a test.
 */

/** What a catalogue entry says. `hint` is what a person can do about it. */
interface CatalogueEntry {
  /** JSON-RPC error number. Ours lie outside the reserved range -32768…-32000. */
  readonly rpcCode: number;
  readonly hint: string;
}

export const errorCatalogue = {
  PARSE_ERROR: { rpcCode: -32700, hint: 'Send one complete JSON-RPC object per line.' },
  INVALID_REQUEST: { rpcCode: -32600, hint: 'Send a JSON-RPC 2.0 object with a string method; batches are not part of ACP.' },
  FRAME_TOO_LARGE: { rpcCode: -32600, hint: 'Send a shorter frame, or raise max_frame_bytes.' },
  METHOD_NOT_FOUND: { rpcCode: -32601, hint: 'Use only methods that initialize advertised.' },
  INVALID_PARAMS: { rpcCode: -32602, hint: 'Correct the named field and send the request again.' },
  CWD_INVALID: { rpcCode: -32602, hint: 'Give the absolute path of a directory that this user can enter.' },
  CWD_MISMATCH: { rpcCode: -32602, hint: 'Load the session with the working directory it was created in.' },
  EMPTY_PROMPT: { rpcCode: -32602, hint: 'Send at least one text block that is not blank, or a resource link.' },
  UNSUPPORTED_CONTENT: { rpcCode: -32602, hint: 'Send only the content kinds that initialize advertised.' },
  SESSION_ALREADY_OPEN: { rpcCode: -32602, hint: 'Use the open session, or close it before loading it again.' },
  KEY_CONFLICT: { rpcCode: -32602, hint: 'Send a new key with a new prompt, or the prompt that the key was first sent with.' },
  INTERNAL: { rpcCode: -32603, hint: 'Look at stderr with --log-level debug and report it.' },
  MODEL_FAILED: { rpcCode: -32603, hint: 'Send the prompt again; if it goes on, check the model server.' },
  LOG_CORRUPT: { rpcCode: -32603, hint: 'Restore the log from a copy; the file was left untouched.' },
  LOG_VERSION: { rpcCode: -32603, hint: 'Load this session with the release that wrote it, or a newer one.' },
  LOG_WRITE_FAILED: { rpcCode: -32603, hint: 'Free space or fix permissions in the state directory, then send the prompt again.' },
  AUTH_REQUIRED: {
    rpcCode: -32000,
    hint: 'Run `dsh-acp login` in a terminal, or set DEEPSEEK_API_KEY (or the variable named by api_key_env) and start again.',
  },
  SESSION_NOT_FOUND: { rpcCode: -32002, hint: 'Use an id from session/new, or session/list.' },
  REQUEST_CANCELLED: { rpcCode: -32800, hint: 'Nothing: the client cancelled the request.' },
  SESSION_BUSY: { rpcCode: -31001, hint: 'Wait for a prompt of this session to end, then send the next one.' },
  OVERLOADED: { rpcCode: -31002, hint: 'Wait for running turns to end, or raise max_running_turns.' },
  THREAD_LOST: { rpcCode: -31003, hint: 'Send the prompt again: the session is revived from its log.' },
  ATTACH_FAILED: { rpcCode: -31004, hint: 'Send the prompt again; if it goes on, lower max_threads or check memory.' },
  SESSION_FAILED: { rpcCode: -31005, hint: 'The session ends its thread each time; start a new session.' },
  SESSION_LOCKED: { rpcCode: -31006, hint: 'Another server has this session open; close it there first, or load it with readOnly.' },
  SHUTTING_DOWN: { rpcCode: -31007, hint: 'Start the server again.' },
  CONFIG_INVALID: { rpcCode: -31008, hint: 'Correct the named key; `dsh-acp config` prints every key with its meaning.' },
  SUBAGENT_FAILED: { rpcCode: -31009, hint: 'Run the command of the subagent by hand; its last words are in the message.' },
  SESSION_READ_ONLY: {
    rpcCode: -31010,
    hint: 'Close the session, and load it without readOnly, in a server without look_only, once nothing else has it open.',
  },
  TURN_INTERRUPTED: { rpcCode: -31011, hint: 'Look at what the turn has done, then send a prompt with a new key.' },
  OUTPUT_SCHEMA_UNMET: {
    rpcCode: -31012,
    hint: 'Send the prompt again; if it goes on, simplify the output schema or say in the prompt what it asks for.',
  },
  SESSION_MEMORY: {
    rpcCode: -31013,
    hint: 'Send the next prompt: it goes on with the newest part of the conversation. Raise max_session_mb, max_thread_mb or max_rss_mb if the work needs more.',
  },
  SERVER_RESTARTED: {
    rpcCode: -31020,
    hint: 'Look at what the turn has done (session/load shows it), then send the next prompt: the session goes on.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

/** JSON values: what may cross a thread, a log line or the wire. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** An error in plain data, since structured clone drops an Error's `code` and `data`. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly data?: JsonObject;
  /** Text for stderr only; never sent to a client. */
  readonly debug?: string;
}

/** An error of the catalogue. `message` is for people; `data` is plain and holds no secret, stack or parameter value. */
export class ServerError extends Error {
  readonly code: ErrorCode;
  readonly data: JsonObject | undefined;

  constructor(code: ErrorCode, message: string, options: { data?: JsonObject; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ServerError';
    this.code = code;
    this.data = options.data;
  }
}

/** Turns anything thrown into plain data that can cross a thread. Unknown errors become INTERNAL without their text. */
export function toWireError(error: unknown): WireError {
  if (error instanceof ServerError) {
    const debug = error.cause instanceof Error ? error.cause.stack : undefined;
    return {
      code: error.code,
      message: error.message,
      ...(error.data === undefined ? {} : { data: error.data }),
      ...(debug === undefined ? {} : { debug }),
    };
  }
  const debug = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'INTERNAL', message: 'The server met an unexpected fault.', debug };
}

/** The reverse of {@link toWireError}. */
export function fromWireError(wire: WireError): ServerError {
  return new ServerError(wire.code, wire.message, {
    ...(wire.data === undefined ? {} : { data: wire.data }),
    ...(wire.debug === undefined ? {} : { cause: wire.debug }),
  });
}
