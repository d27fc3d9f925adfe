/**
 * The ways to sign in that `initialize` offers: a key from the environment always, and a log-in on a terminal where the client
 * says that it has one.
 */
import type { AuthMethod, ClientCapabilities } from '@agentclientprotocol/sdk';
import { ServerError } from '../../../shared/errors.ts';
import type { Credentials } from './credentials.ts';

/** How this program was started, to be started again with `--login` at the end. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** What it must be started with beside; holds no key. */
  readonly env: Readonly<Record<string, string>>;
}

const environmentId = 'api-key';
const terminalId = 'login';
const loginFlag = '--login';

/** How a client can have a person sign in on a terminal; `meta` is how clients did it before the protocol knew of it. */
type TerminalLogin = 'standard' | 'meta' | 'none';

export class AuthMethods {
  readonly #launch: Launch;
  #login: TerminalLogin = 'none';
  #withMeta = false;

  constructor(launch: Launch) {
    this.#launch = launch;
  }

  /** What the client says of itself decides what it is offered. */
  initialize(capabilities: ClientCapabilities | undefined): void {
    this.#withMeta = capabilities?._meta?.['terminal-auth'] === true;
    this.#login = capabilities?.auth?.terminal === true ? 'standard' : this.#withMeta ? 'meta' : 'none';
  }

  /** Never empty. */
  list(keyVariable: string): AuthMethod[] {
    const environment: AuthMethod = {
      id: environmentId,
      name: 'API key',
      description: `Run "dsh-acp login" once in a terminal, or set ${keyVariable} for the command that starts this server.`,
    };
    return [environment, ...this.#terminalLogin()];
  }

  /** @throws ServerError INVALID_PARAMS for a method that is not offered or runs on a terminal, AUTH_REQUIRED where there is no key */
  async authenticate(methodId: string, credentials: Credentials): Promise<void> {
    const known = methodId === environmentId || (methodId === terminalId && this.#login === 'meta');
    if (!known) {
      const message =
        methodId === terminalId && this.#login === 'standard'
          ? 'This method runs on a terminal: start the agent again with the args of the method.'
          : 'methodId is none of the advertised methods.';
      throw new ServerError('INVALID_PARAMS', message, { data: { field: 'methodId', expected: [environmentId] } });
    }
    await credentials.signIn();
  }

  #terminalLogin(): AuthMethod[] {
    if (this.#login === 'none') return [];
    const words = {
      id: terminalId,
      name: 'Log in on a terminal',
      description: 'Asks for the API key on a terminal and stores it for this user.',
      ...(this.#withMeta ? { _meta: { 'terminal-auth': this.#relaunch() } } : {}),
    };
    return [this.#login === 'standard' ? { type: 'terminal', args: [loginFlag], ...words } : words];
  }

  #relaunch(): object {
    const { command, args, env } = this.#launch;
    return { command, args: [...args, loginFlag], env, label: 'dsh-acp login' };
  }
}
