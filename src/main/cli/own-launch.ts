/** How this process was started, so that a client can start the same command again on a terminal. */
import type { Launch } from '../acp/auth/auth-methods.ts';
import { variableOf } from '../config/key-spelling.ts';
import { keyNames, specOf } from '../config/schema.ts';

/** Variables beside our own settings that decide which server the key is for, and where it is stored. */
const further = ['DEEPSEEK_BASE_URL', 'DSH_ACP_CONFIG', 'XDG_CONFIG_HOME'];

/** The command line holds no key, since there is no flag for one; of the environment only what is no secret is given on. */
export function ownLaunch(): Launch {
  const names = [...keyNames.filter((name) => specOf(name).secret !== true).map(variableOf), ...further];
  const env = names.flatMap((name) => {
    const value = process.env[name];
    return value === undefined || value === '' ? [] : [[name, value] as const];
  });
  return { command: process.execPath, args: [...process.execArgv, ...process.argv.slice(1)], env: Object.fromEntries(env) };
}
