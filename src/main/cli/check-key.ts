/** Whether a model server takes a key: one small request, no redirects, so that the key goes nowhere else. */
import { getJson } from './doctor/get-json.ts';

const timeoutMs = 5_000;

export type KeyCheck =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly status: number }
  /** Nothing is known: the server could not be asked, or said something else. */
  | { readonly kind: 'unknown'; readonly why: string };

/** Never rejects. */
export async function checkKey(baseUrl: string, key: string): Promise<KeyCheck> {
  const result = await getJson(`${baseUrl}/models`, { timeoutMs, headers: { authorization: `Bearer ${key}` } });
  if (result.kind === 'failed') return { kind: 'unknown', why: `not reached: ${result.reason}` };
  if (result.status === 401 || result.status === 403) return { kind: 'refused', status: result.status };
  return result.status === 200 ? { kind: 'taken' } : { kind: 'unknown', why: `it answered with status ${result.status}` };
}
