/**
 * Looks for model servers on this machine's loopback, at the ports they use by default.
 *
 * Sends nothing but a few GETs without a body. A server is known by the shape of its answers, since other programs use
 * the same ports.
 */
import { getJson, readModelList } from './get-json.ts';

const defaultTimeoutMs = 150;

export interface FoundServer {
  readonly product: string;
  /** What `--base-url` takes. */
  readonly baseUrl: string;
  /** Ids, at most 20. */
  readonly models: readonly string[];
}

export interface Probe {
  readonly product: 'Ollama' | 'llama.cpp' | 'vLLM' | 'LM Studio';
  readonly port: number;
}

export const defaultProbes: readonly Probe[] = [
  { product: 'Ollama', port: 11434 },
  { product: 'llama.cpp', port: 8080 },
  { product: 'vLLM', port: 8000 },
  { product: 'LM Studio', port: 1234 },
];

async function get(port: number, path: string, timeoutMs: number): Promise<unknown> {
  const result = await getJson(`http://127.0.0.1:${port}${path}`, { timeoutMs });
  return result.kind === 'answer' && result.status === 200 ? result.json : undefined;
}

function textField(json: unknown, field: string): string | undefined {
  const value = typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[field] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Whether the server shows, beside its list of models, what this product shows. */
async function isProduct(probe: Probe, timeoutMs: number): Promise<boolean> {
  if (probe.product === 'Ollama') return textField(await get(probe.port, '/api/version', timeoutMs), 'version') !== undefined;
  if (probe.product === 'llama.cpp') return textField(await get(probe.port, '/health', timeoutMs), 'status') !== undefined;
  return true;
}

function productName(probe: Probe, owner: string | undefined): string {
  if (owner === 'vllm') return 'vLLM';
  if (owner === 'llamacpp') return 'llama.cpp';
  return probe.product === 'vLLM' || probe.product === 'LM Studio' ? `OpenAI-compatible server (perhaps ${probe.product})` : probe.product;
}

async function look(probe: Probe, timeoutMs: number): Promise<FoundServer | undefined> {
  const models = readModelList(await get(probe.port, '/v1/models', timeoutMs));
  if (models === undefined || !(await isProduct(probe, timeoutMs))) return undefined;
  return {
    product: productName(probe, models[0]?.owner),
    baseUrl: `http://127.0.0.1:${probe.port}/v1`,
    models: models.slice(0, 20).map((model) => model.id),
  };
}

/** All that were found, in the order of the probes. `timeoutMs` is for each GET. Never rejects. */
export async function findModelServers(probes: readonly Probe[] = defaultProbes, timeoutMs = defaultTimeoutMs): Promise<FoundServer[]> {
  const found = await Promise.all(probes.map(async (probe) => await look(probe, timeoutMs)));
  return found.filter((server) => server !== undefined);
}
