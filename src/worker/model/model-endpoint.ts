/**
 * Where a chat-completions server is, checked, and the one connection pool of this thread.
 *
 * The key travels with every request, so an address that could carry it somewhere unmeant is refused here: another scheme,
 * credentials inside the address, and the link-local range, where clouds keep their metadata services.
 */
import { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { BlockList, type LookupFunction } from 'node:net';
import { ServerError } from '../../shared/errors.ts';

export interface ModelEndpoint {
  readonly secure: boolean;
  /** Without brackets around an IPv6 address. */
  readonly hostname: string;
  readonly port: number;
  /** Path and query of `chat/completions`. */
  readonly path: string;
  /** As the host header has it: without the port that the scheme means anyway. */
  readonly authority: string;
  /** `host:port`, for messages. */
  readonly label: string;
}

const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');

function isLinkLocal(address: string): boolean {
  // Not by node's isIPv6: its pattern costs each thread three milliseconds to compile.
  return linkLocal.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

function refuse(expected: string): never {
  throw new ServerError('CONFIG_INVALID', `base_url ${expected}.`);
}

/**
 * Reads a base URL such as `http://127.0.0.1:11434/v1`; a query string is kept.
 *
 * @throws ServerError CONFIG_INVALID, without repeating the address, since it may hold a password
 */
export function parseEndpoint(baseUrl: string): ModelEndpoint {
  if (!URL.canParse(baseUrl)) refuse('must be an absolute http or https address');
  const url = new URL(baseUrl);
  const secure = url.protocol === 'https:';
  if (!secure && url.protocol !== 'http:') refuse(`must use http or https, not ${url.protocol}`);
  if (url.username !== '' || url.password !== '') refuse('must not hold a user name or password; give the key by api_key_env');
  const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  if (isLinkLocal(hostname)) refuse('must not be a link-local address (169.254.0.0/16, fe80::/10)');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  let base = url.pathname;
  while (base.endsWith('/')) base = base.slice(0, -1);
  const label = `${url.hostname}:${port}`;
  return { secure, hostname, port, path: `${base}/chat/completions${url.search}`, authority: url.host, label };
}

/** A name may resolve to what the address check refuses, so the answers of the resolver are checked too. */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  process.getBuiltinModule('node:dns').lookup(hostname, options, (error, address, family) => {
    const found = typeof address === 'string' ? [{ address }] : address;
    if (error === null && found.some((entry) => isLinkLocal(entry.address))) {
      const refused: NodeJS.ErrnoException = new Error('resolves to a link-local address');
      refused.code = 'ELINKLOCAL';
      callback(refused, '', 0);
      return;
    }
    callback(error, address, family);
  });
};

/** Loaded only for an address that needs it: TLS costs each thread a millisecond and its memory. */
export function secureHttp(): typeof import('node:https') {
  return process.getBuiltinModule('node:https');
}

const agentOptions = { keepAlive: true, scheduling: 'lifo', maxFreeSockets: 256 } as const;
let plainAgent: HttpAgent | undefined;
let secureAgent: HttpsAgent | undefined;

/** The thread's pool for plain or TLS connections; sessions of one thread share it. Idle sockets do not keep a thread alive. */
export function agentFor(endpoint: ModelEndpoint): HttpAgent {
  if (endpoint.secure) return (secureAgent ??= new (secureHttp().Agent)(agentOptions));
  return (plainAgent ??= new HttpAgent(agentOptions));
}
