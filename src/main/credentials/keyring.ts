/**
 * The keyring of the desktop, through `secret-tool` of libsecret, where that is installed and works. A key goes to it on stdin,
 * never as an argument, which other users can see.
 */
import { spawn } from 'node:child_process';
import { keyPattern } from './credentials-file.ts';

/** A keyring that is locked asks the person to open it, so this is a person's time. */
const storeTimeoutMs = 60_000;
const lookupTimeoutMs = 10_000;
const mostOutput = 16 * 1024;
const service = 'dsh-acp';

export interface Keyring {
  /** Says whether the keyring has it: it is read back. Never rejects. */
  store(baseUrl: string, key: string): Promise<boolean>;
  /** Never rejects. */
  find(baseUrl: string): Promise<string | undefined>;
  /** Never rejects. */
  remove(baseUrl: string): Promise<void>;
}

/** @param env decides where `secret-tool` is looked for, and which desktop it talks to */
export function secretToolKeyring(env: NodeJS.ProcessEnv = process.env): Keyring {
  const attributes = (baseUrl: string): readonly string[] => ['service', service, 'server', baseUrl];
  const find = async (baseUrl: string): Promise<string | undefined> => {
    const found = await run(['lookup', ...attributes(baseUrl)], { env, timeoutMs: lookupTimeoutMs });
    const key = found?.trim();
    return key !== undefined && keyPattern.test(key) ? key : undefined;
  };
  return {
    find,
    store: async (baseUrl, key) => {
      const label = `--label=dsh-acp: key for ${baseUrl}`;
      const done = await run(['store', label, ...attributes(baseUrl)], { env, timeoutMs: storeTimeoutMs, input: key });
      return done !== undefined && (await find(baseUrl)) === key;
    },
    remove: async (baseUrl) => {
      await run(['clear', ...attributes(baseUrl)], { env, timeoutMs: lookupTimeoutMs });
    },
  };
}

interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly input?: string;
}

/** What it printed; `undefined` when it is not there, failed, or took too long. Never rejects. */
async function run(args: readonly string[], { env, timeoutMs, input = '' }: RunOptions): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const child = spawn('secret-tool', args, { env, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
    let output = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const end = (result: string | undefined): void => {
      clearTimeout(timer);
      child.stdout.destroy();
      resolve(result);
    };
    child.on('error', () => end(undefined));
    child.on('close', (code) => end(code === 0 ? output : undefined));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(0, mostOutput);
    });
    // A program that does not read what it is given fails by itself.
    child.stdin.on('error', () => undefined).end(input);
  });
}
