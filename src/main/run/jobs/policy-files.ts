/** Reads the policies that a jobs file names or holds. A file is read once, however many jobs name it. */
import { readFile, stat } from 'node:fs/promises';
import type { JsonObject } from '../../../shared/errors.ts';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import { parsePolicy } from '../../config/policy/parse-policy.ts';
import type { PolicyReader } from './job-schema.ts';

const maxFileBytes = 1024 * 1024;
const maxKept = 1_000;

export class PolicyFiles implements PolicyReader {
  readonly #kept = new Map<string, Promise<PolicyRules>>();

  inline(policy: JsonObject): PolicyRules {
    return parsePolicy(policy, 'policy of the job');
  }

  async file(path: string): Promise<PolicyRules> {
    const known = this.#kept.get(path);
    if (known !== undefined) return await known;
    if (this.#kept.size >= maxKept) this.#kept.clear();
    const reading = read(path);
    this.#kept.set(path, reading);
    return await reading;
  }
}

async function read(path: string): Promise<PolicyRules> {
  const source = await readText(path);
  return parsePolicy(path.endsWith('.json') ? parseJson(source, path) : await parseToml(source, path), path);
}

async function readText(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size <= maxFileBytes) return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`the file ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`, { cause: error });
  }
  throw new Error(`the file ${path} is larger than ${maxFileBytes} bytes`);
}

function parseJson(source: string, path: string): unknown {
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new Error(`the file ${path} is no JSON`, { cause: error });
  }
}

async function parseToml(source: string, path: string): Promise<unknown> {
  const { parse } = await import('smol-toml');
  try {
    return parse(source);
  } catch (error) {
    throw new Error(`the file ${path} is no TOML`, { cause: error });
  }
}
