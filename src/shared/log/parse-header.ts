/**
 * Line 1 of a log as a checked {@link SessionHeader}. Pure; shared by main, which reads only this line, and by the reader
 * of a whole log.
 */
import { basename, isAbsolute } from 'node:path';
import { ServerError } from '../errors.ts';
import { type ForkOrigin, logVersion, type SessionHeader } from '../events.ts';
import { unsealLine } from './line-seal.ts';
import { logCorrupt } from './log-faults.ts';
import { parseStoredOptions } from './parse-stored-options.ts';
import { isSessionId, sessionIdOfLog } from './session-paths.ts';

/**
 * Checks the header in `bytes[start, end)`, LF not counted. `path` names the log: the header's id must be the file's.
 *
 * @throws ServerError LOG_VERSION for a version that this release does not know; LOG_CORRUPT for anything else that is wrong
 */
export function parseHeader(path: string, bytes: Buffer, start: number, end: number): SessionHeader {
  const raw = parseObject(path, unsealLine(bytes, start, end));
  if (raw['type'] !== 'session') {
    throw logCorrupt(path, 1, 'expected a header with type "session"');
  }
  const { version, id, createdAt, cwd, agent } = raw;
  if (typeof version !== 'number' || !Number.isSafeInteger(version)) {
    throw logCorrupt(path, 1, 'expected a whole number as version');
  }
  if (version !== logVersion) {
    throw wrongVersion(path, version);
  }
  if (id !== sessionIdOfLog(basename(path)) || typeof id !== 'string') {
    throw logCorrupt(path, 1, 'expected the id that the file is named after');
  }
  if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt))) {
    throw logCorrupt(path, 1, 'expected an ISO 8601 time as createdAt');
  }
  if (typeof cwd !== 'string' || !isAbsolute(cwd)) {
    throw logCorrupt(path, 1, 'expected an absolute path as cwd');
  }
  if (!isRecord(agent) || typeof agent['name'] !== 'string' || typeof agent['version'] !== 'string') {
    throw logCorrupt(path, 1, 'expected agent with name and version');
  }
  const base = { type: 'session', version, id, createdAt, cwd, agent: { name: agent['name'], version: agent['version'] } } as const;
  const forkedFrom = raw['forkedFrom'] === undefined ? undefined : parseOrigin(raw['forkedFrom']);
  if (raw['forkedFrom'] !== undefined && forkedFrom === undefined) {
    throw logCorrupt(path, 1, 'expected forkedFrom with sessionId and seq');
  }
  const header = { ...base, ...(forkedFrom === undefined ? {} : { forkedFrom }) };
  if (raw['options'] === undefined) return header;
  const options = parseStoredOptions(raw['options']);
  if (options === undefined) {
    throw logCorrupt(path, 1, 'expected options as this release writes them');
  }
  return { ...header, options };
}

function parseOrigin(value: unknown): ForkOrigin | undefined {
  if (!isRecord(value)) return undefined;
  const { sessionId, seq } = value;
  return isSessionId(sessionId) && typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= -1 ? { sessionId, seq } : undefined;
}

function parseObject(path: string, text: string | undefined): Record<string, unknown> {
  if (text === undefined) {
    throw logCorrupt(path, 1, 'the checksum does not fit the line');
  }
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    // The parser's text would quote the log's content.
    throw logCorrupt(path, 1, 'expected a JSON object');
  }
  if (!isRecord(raw)) {
    throw logCorrupt(path, 1, 'expected a JSON object');
  }
  return raw;
}

function wrongVersion(path: string, version: number): ServerError {
  return new ServerError(
    'LOG_VERSION',
    `The session log ${basename(path)} has version ${version}; this release reads version ${logVersion}.`,
    {
      data: { version, supported: logVersion },
    },
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
