/**
 * Checks a frame that an agent wrote against the schema of the ACP SDK, and for members that the schema does not know.
 *
 * The schema's root accepts nearly anything (extension methods may carry any value) and its objects are open. So the
 * definition is picked by method, and made closed first: every object of it refuses members that nothing in it names.
 * `_meta` and raw input and output stay open, as the protocol says.
 */
import type { ErrorObject, ValidateFunction } from 'ajv';
import { acpSides, acpValidator } from './acp-validators.ts';

export interface AgentFrameContext {
  /** The method that a response answers; without it only the envelope of a response is checked. */
  readonly method?: string;
}

/** What is wrong with the frame, a line each; empty when it is a valid frame of an agent. */
export function validateAgentFrame(frame: unknown, context: AgentFrameContext = {}): string[] {
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) return ['the frame is not an object'];
  const members = frame as Record<string, unknown>;
  const problems = members['jsonrpc'] === '2.0' ? [] : ['jsonrpc is not "2.0"'];
  return [...problems, ...(members['method'] === undefined ? responseProblems(members, context) : callProblems(members))];
}

function callProblems(frame: Record<string, unknown>): string[] {
  const method = frame['method'];
  if (typeof method !== 'string') return ['method is not a string'];
  const isRequest = 'id' in frame;
  const envelope = unknownMembers(frame, ['jsonrpc', 'id', 'method', 'params'], method);
  // A method of our own carries what it likes.
  if (method.startsWith('_')) return envelope;
  const name = `${method} ${isRequest ? 'Request' : 'Notification'}`;
  if (acpSides[name] === 'agent') return [...envelope, `${method}: an agent does not send this, a client does`];
  if (acpSides[name] === undefined) return [...envelope, `${method}: no such ${isRequest ? 'request' : 'notification'} in the schema`];
  return [...envelope, ...schemaProblems(acpValidator(name), frame['params'], method)];
}

function responseProblems(frame: Record<string, unknown>, context: AgentFrameContext): string[] {
  const where = context.method === undefined ? 'response' : `response to ${context.method}`;
  const envelope = unknownMembers(frame, ['jsonrpc', 'id', 'result', 'error'], where);
  const id = frame['id'];
  if (typeof id !== 'string' && typeof id !== 'number' && id !== null) envelope.push(`${where}: the id is neither string, number nor null`);
  if ('result' in frame === 'error' in frame) return [...envelope, `${where}: exactly one of result and error is needed`];
  if ('error' in frame) return [...envelope, ...errorProblems(frame['error'], where)];
  if (context.method === undefined || context.method.startsWith('_')) return envelope;
  const name = `${context.method} Response`;
  if (acpSides[name] !== 'agent') return [...envelope, `${where}: the schema knows no such response of an agent`];
  return [...envelope, ...schemaProblems(acpValidator(name), frame['result'], where)];
}

function errorProblems(error: unknown, where: string): string[] {
  if (typeof error !== 'object' || error === null) return [`${where}: error is not an object`];
  const { code, message } = error as Record<string, unknown>;
  const problems = unknownMembers(error as Record<string, unknown>, ['code', 'message', 'data'], `${where} error`);
  if (!Number.isInteger(code)) problems.push(`${where}: error.code is not an integer`);
  if (typeof message !== 'string' || message === '') problems.push(`${where}: error.message is not a text`);
  return problems;
}

function unknownMembers(object: Record<string, unknown>, known: readonly string[], where: string): string[] {
  return Object.keys(object)
    .filter((key) => !known.includes(key))
    .map((key) => `${where}: unknown member "${key}"`);
}

function schemaProblems(validate: ValidateFunction, value: unknown, where: string): string[] {
  if (validate(value)) return [];
  // `if` and the unions only repeat that one of their branches has failed.
  const errors = (validate.errors ?? []).filter(({ keyword }) => !['if', 'anyOf', 'oneOf'].includes(keyword));
  return [...new Set(errors.map((error) => `${where}${error.instancePath}: ${error.message ?? error.keyword}${detail(error)}`))];
}

function detail(error: ErrorObject): string {
  const { unevaluatedProperty, additionalProperty, allowedValue } = error.params as Record<string, string | undefined>;
  const name = unevaluatedProperty ?? additionalProperty ?? allowedValue;
  return name === undefined ? '' : ` (${name})`;
}
