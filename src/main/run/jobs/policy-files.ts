/** Reads the policies that a jobs file names or holds. A file is read once, however many jobs name it. */
import type { JsonObject } from '../../../shared/errors.ts';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import { parsePolicy } from '../../config/policy/parse-policy.ts';
import { readPolicyFile } from '../../config/policy/read-policy-file.ts';
import type { PolicyReader } from './job-schema.ts';

const maxKept = 1_000;

export class PolicyFiles implements PolicyReader {
  readonly #kept = new Map<string, Promise<PolicyRules>>();

  inline(policy: JsonObject): PolicyRules {
    return parsePolicy(policy, 'the job');
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
  const policy = await readPolicyFile(path, 'the job');
  if (policy === undefined) throw new Error('there is no policy');
  return policy;
}
