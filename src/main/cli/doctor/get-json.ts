/** One bounded GET: no body, no redirects, a time limit over the whole, at most 1 MiB of answer. */
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

const maxBodyBytes = 1024 * 1024;

export type GetResult =
  | { readonly kind: 'answer'; readonly status: number /** `undefined` when the body is no JSON. */; readonly json: unknown }
  | { readonly kind: 'failed' /** A short word: `ECONNREFUSED`, `timeout`. */; readonly reason: string };

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Some other kind of server answered.
  }
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error('answer too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'timeout';
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.message : String(error);
}

/** Never rejects. */
export async function getJson(url: string, options: { timeoutMs: number; headers?: Record<string, string> }): Promise<GetResult> {
  const signal = AbortSignal.timeout(options.timeoutMs);
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { accept: 'application/json', ...options.headers };
      send(url, { method: 'GET', headers, signal, agent: false }, resolve).on('error', reject).end();
    });
    return { kind: 'answer', status: response.statusCode ?? 0, json: parse(await readBody(response)) };
  } catch (error) {
    return { kind: 'failed', reason: reasonOf(error, signal) };
  }
}

/** The ids of an OpenAI-style list of models; `undefined` when it is none. */
export function readModelList(json: unknown): { id: string; owner: string }[] | undefined {
  const data = typeof json === 'object' && json !== null && 'data' in json ? json.data : undefined;
  if (!Array.isArray(data)) return undefined;
  const models: { id: string; owner: string }[] = [];
  for (const entry of data as unknown[]) {
    if (typeof entry !== 'object' || entry === null || !('id' in entry) || typeof entry.id !== 'string') return undefined;
    models.push({ id: entry.id, owner: 'owned_by' in entry && typeof entry.owned_by === 'string' ? entry.owned_by : '' });
  }
  return models;
}
