/** The file that `policy_file` names: TOML or JSON, told apart by its extension. */
import { extname } from 'node:path';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import { configError } from '../config-error.ts';
import { parseToml, readTextFile } from '../read-text-file.ts';
import { parsePolicy } from './parse-policy.ts';

const key = 'policy_file';

/**
 * Reads and checks the policy; `undefined` without a path. `where` says who named the file. There is no default in place of
 * a file that is wrong: a server that was told to keep to a policy does not start without it.
 *
 * @throws ServerError CONFIG_INVALID for a file that cannot be read or is neither TOML nor JSON, and for the first thing
 * that is wrong in it
 */
export async function readPolicyFile(path: string | undefined, where: string): Promise<PolicyRules | undefined> {
  if (path === undefined) return undefined;
  const extension = extname(path).toLowerCase();
  if (extension !== '.toml' && extension !== '.json')
    throw configError({ key, expected: 'a file that ends in .toml or .json', came: path, where });
  const file = await readTextFile(path, { key, where, isOptional: false });
  const text = file?.text ?? '';
  return parsePolicy(extension === '.toml' ? await parseToml(text, { path, key }) : parseJson(text, path), path);
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw configError({ key, expected: 'JSON', where: path });
  }
}
