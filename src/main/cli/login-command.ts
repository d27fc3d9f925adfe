/**
 * `dsh-acp login`: asks for the key of the model server, tries it, and stores it for this user. Editors start it on a terminal
 * of their own, so it must say everything that a person needs to know, and end with 0 only when the key is stored.
 */
import type { LoadedConfig } from '../config/load-config.ts';
import { keyPattern } from '../credentials/credentials-file.ts';
import type { KeyStore } from '../credentials/key-store.ts';
import { checkKey } from './check-key.ts';
import { askHidden, askYes, type TerminalInput } from './hidden-input.ts';
import { keyBefore, keyServerOf } from './key-server.ts';

export interface LoginOptions {
  readonly loaded: LoadedConfig;
  /** `undefined` for a user without a home. */
  readonly keys: KeyStore | undefined;
  /** Takes the key from the input, which ends behind it, and asks nothing. */
  readonly fromStdin: boolean;
  readonly input: TerminalInput;
  /** For what was done. */
  readonly print: (text: string) => unknown;
  /** For questions and faults. */
  readonly say: (text: string) => void;
}

const mostInput = 8 * 1024;

/** The exit code: 0 when the key is stored. */
export async function runLogin({ loaded, keys, fromStdin, input, print, say }: LoginOptions): Promise<number> {
  const fail = (text: string): number => {
    say(`dsh-acp: ${text}\n`);
    return 1;
  };
  const server = keyServerOf(loaded);
  if (server === undefined) return fail('the configured model needs no key; name another one with --model to store a key for it.');
  if (keys === undefined) return fail('this user has no home directory to store a key in; set XDG_CONFIG_HOME.');
  if (!fromStdin && input.isTTY !== true)
    return fail(
      'login asks for the key on a terminal, and this is none. Run it in one, or give the key with: dsh-acp login --key-stdin < FILE',
    );
  const { baseUrl } = server;
  const given = fromStdin ? await readAll(input) : await askHidden(`API key for ${baseUrl} (it is not shown): `, input, say);
  const key = given?.trim() ?? '';
  if (key === '') return fail('no key was given; nothing is stored.');
  if (!keyPattern.test(key)) return fail('that is no key: expected printable characters without blanks. Nothing is stored.');
  const check = await checkKey(baseUrl, key);
  if (check.kind === 'refused') return fail(`${baseUrl} refuses this key (status ${check.status}); nothing is stored.`);
  if (check.kind === 'unknown') {
    const unchecked = `The key could not be tried at ${baseUrl} (${check.why}).`;
    if (fromStdin) say(`${unchecked} It is stored all the same.\n`);
    else if (!(await askYes(`${unchecked} Store it all the same? [y/N] `, input, say))) return fail('nothing is stored.');
  }
  try {
    print(`The key for ${baseUrl} is stored in ${await keys.store(baseUrl, key)}.\n`);
  } catch (error) {
    return fail(`the key could not be stored: ${error instanceof Error ? error.message : String(error)}`);
  }
  const before = keyBefore(loaded);
  if (before !== undefined) say(`Note: the key in ${before} goes before it wherever that is set.\n`);
  return 0;
}

async function readAll(input: TerminalInput): Promise<string | undefined> {
  let text = '';
  for await (const chunk of input) {
    text += chunk.toString();
    if (text.length > mostInput) return text;
  }
  return text;
}
