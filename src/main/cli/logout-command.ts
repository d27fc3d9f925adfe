/** `dsh-acp logout`: forgets the stored key of the model server. Running servers use it no more for new sessions. */
import { keyBefore, keyServerOf } from './key-server.ts';
import type { LoginOptions } from './login-command.ts';

/** The exit code: 0 when no key is stored afterwards. */
export async function runLogout({ loaded, keys, print, say }: Omit<LoginOptions, 'fromStdin' | 'input'>): Promise<number> {
  const server = keyServerOf(loaded);
  if (server === undefined || keys === undefined) {
    print('There is no stored key: the configured model needs none.\n');
    return 0;
  }
  const { baseUrl } = server;
  try {
    const removed = await keys.remove(baseUrl);
    print(removed ? `The stored key for ${baseUrl} is removed.\n` : `There is no stored key for ${baseUrl}.\n`);
  } catch (error) {
    say(`dsh-acp: the stored key could not be removed: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  const before = keyBefore(loaded);
  if (before !== undefined) say(`Note: there is still a key in ${before}.\n`);
  return 0;
}
