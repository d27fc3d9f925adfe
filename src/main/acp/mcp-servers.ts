/**
 * The `mcpServers` of a request, checked. They may hold secrets: what is wrong is named by its place, and never by its value.
 *
 * Whether a server can be reached is not asked here: one that cannot must not cost the session.
 */
import { isAbsolute } from 'node:path';
import { ServerError } from '../../shared/errors.ts';
import type { McpServerSpec } from '../../shared/mcp-protocol.ts';

const mostServers = 32;
const longestName = 100;
/** What a system takes as one argument or variable. */
const longestValue = 128 * 1024;
const mostValues = 1000;
/** Of all of them together, in UTF-16 units. */
const longestTogether = 1024 * 1024;

type Entry = Readonly<Record<string, unknown>>;

/** In the order given. @throws ServerError INVALID_PARAMS naming the member */
export function checkedMcpServers(given: readonly unknown[]): readonly McpServerSpec[] {
  if (given.length > mostServers) throw refused('', `may name at most ${mostServers} servers, and ${given.length} came.`);
  const servers = given.map((value, index) => checkedServer(value, `[${index}]`));
  const names = servers.map(({ name }) => name);
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (twice >= 0) throw refused(`[${twice}].name`, 'is the name of an earlier server; each needs one of its own.');
  if (JSON.stringify(servers).length > longestTogether) throw refused('', `may take ${longestTogether} characters together.`);
  return servers;
}

function checkedServer(value: unknown, at: string): McpServerSpec {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(at, 'must be an object.');
  const entry = value as Entry;
  const name = checkedName(entry['name'], `${at}.name`);
  switch (entry['type'] ?? 'stdio') {
    case 'stdio':
      return {
        type: 'stdio',
        name,
        command: checkedCommand(entry['command'], `${at}.command`),
        args: list(entry['args'], `${at}.args`).map((one, index) => text(one, `${at}.args[${index}]`)),
        env: pairs(entry['env'], `${at}.env`, isVariableName, 'a name without = and NUL'),
      };
    case 'http':
    case 'sse':
      return {
        type: entry['type'] as 'http' | 'sse',
        name,
        url: checkedUrl(entry['url'], `${at}.url`),
        headers: pairs(entry['headers'], `${at}.headers`, isHeaderName, 'the name of an HTTP header', isHeaderValue),
      };
    default:
      throw refused(`${at}.type`, 'must be stdio, http or sse.');
  }
}

/** It is shown to people and stands beside buttons: one visible line. */
function checkedName(value: unknown, at: string): string {
  const hides = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;
  if (typeof value === 'string' && value.trim() !== '' && value.length <= longestName && !hides.test(value)) return value;
  throw refused(at, `must be one visible line of at most ${longestName} characters.`);
}

/** A path from somewhere would be another program in each directory. */
function checkedCommand(value: unknown, at: string): string {
  const command = text(value, at);
  const isBare = /^[^/\\-][^/\\]*$/.test(command) && command !== '.' && command !== '..';
  if (isAbsolute(command) || isBare) return command;
  throw refused(at, 'must be an absolute path, or the bare name of a program that is found by PATH.');
}

function checkedUrl(value: unknown, at: string): string {
  const url = text(value, at);
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:') throw refused(at, 'must be an http or https URL.');
  // fetch refuses such a URL.
  if (parsed.username !== '' || parsed.password !== '') throw refused(at, 'must hold no user and no password; put them into a header.');
  return url;
}

function pairs(
  value: unknown,
  at: string,
  isName: (name: string) => boolean,
  what: string,
  isValue: (value: string) => boolean = () => true,
): Readonly<Record<string, string>> {
  const entries = list(value, at).map((one, index): [string, string] => {
    const { name, value: given } = (typeof one === 'object' && one !== null ? one : {}) as Entry;
    if (typeof name !== 'string' || name.length > longestValue || !isName(name)) throw refused(`${at}[${index}].name`, `must be ${what}.`);
    const checked = text(given, `${at}[${index}].value`);
    if (!isValue(checked)) throw refused(`${at}[${index}].value`, 'must be a value that an HTTP header can have.');
    return [name, checked];
  });
  return Object.fromEntries(entries);
}

function list(value: unknown, at: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw refused(at, 'must be a list.');
  if (value.length > mostValues) throw refused(at, `may have ${mostValues} entries.`);
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== 'string') throw refused(at, 'must be a string.');
  if (value.length > longestValue || value.includes('\0')) throw refused(at, `must have at most ${longestValue} characters and no NUL.`);
  return value;
}

function isVariableName(name: string): boolean {
  return name !== '' && name !== '__proto__' && !/[=\0]/.test(name);
}

function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && name !== '__proto__';
}

function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}

function refused(at: string, fault: string): ServerError {
  const field = `mcpServers${at}`;
  return new ServerError('INVALID_PARAMS', `${field} ${fault}`, { data: { field } });
}
