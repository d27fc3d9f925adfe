/**
 * What the sessions of this connection reach their model with, as it is now.
 *
 * A key of the environment or the settings comes first, then a stored one, which is looked up again for each session that is
 * made or opened: signing in and out take effect without a restart, for sessions made later. A session keeps what it began with.
 */
import type { ModelAccess, ModelConfig } from '../../../shared/config.ts';
import { ServerError } from '../../../shared/errors.ts';
import type { FoundKey, KeyStore } from '../../credentials/key-store.ts';

export interface CredentialsParts {
  /** As the settings have it, without a stored key. */
  readonly configured: ModelAccess;
  /** What takes its place once there is a key; absent where a key changes nothing but itself. */
  readonly withKey?: ModelAccess | undefined;
  /** Stored keys; absent where none are used. */
  readonly keys?: Pick<KeyStore, 'find' | 'remove'> | undefined;
  /** The variable that a key may come from, for people. */
  readonly keyVariable: string;
}

/** What of a session's settings hangs on the key. */
export function accessOf({ model, models, prices }: ModelAccess): ModelAccess {
  return { model, prices, ...(models === undefined ? {} : { models }) };
}

type RemoteModel = Extract<ModelConfig, { kind: 'openai-compatible' }>;

export class Credentials {
  readonly #parts: CredentialsParts;
  #current: ModelAccess;
  /** Signed out on this connection: the key that this process was started with is left alone until the client signs in again. */
  #signedOut = false;
  /** Why a stored key is not used. */
  #reason: string | undefined;

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
    this.#current = parts.configured;
  }

  /** The variable that a key may come from. */
  get keyVariable(): string {
    return this.#parts.keyVariable;
  }

  /** As of the last {@link refresh}. */
  get access(): ModelAccess {
    return this.#current;
  }

  /** Looks for a key again. Never rejects. */
  async refresh(): Promise<ModelAccess> {
    this.#reason = undefined;
    this.#current = await this.#resolve();
    return this.#current;
  }

  /** @throws ServerError AUTH_REQUIRED when the model cannot be reached without a key and there is none */
  require(): void {
    const { model } = this.#current;
    if (!needsKey(model)) return;
    const { keyVariable } = this.#parts;
    const why = this.#reason ?? (this.#signedOut ? 'this client has signed out' : 'there is none');
    const message = `The DeepSeek API needs a key, and ${why}. Run "dsh-acp login" in a terminal, or set ${keyVariable} and start again.`;
    throw new ServerError('AUTH_REQUIRED', message);
  }

  /** @throws ServerError AUTH_REQUIRED as {@link require} */
  async signIn(): Promise<void> {
    this.#signedOut = false;
    await this.refresh();
    this.require();
  }

  /** Removes the stored key. @throws ServerError INTERNAL when it cannot be removed; then nothing has changed */
  async signOut(): Promise<void> {
    const model = this.#remote();
    try {
      if (model !== undefined) await this.#parts.keys?.remove(model.baseUrl);
    } catch (cause) {
      throw new ServerError('INTERNAL', 'The stored key could not be removed.', { cause });
    }
    this.#signedOut = true;
    await this.refresh();
  }

  async #resolve(): Promise<ModelAccess> {
    const { configured, withKey } = this.#parts;
    const model = this.#remote();
    if (model === undefined) return configured;
    const base = withKey ?? configured;
    if (model.apiKey !== undefined && !this.#signedOut) return base;
    const found = await this.#stored(model.baseUrl);
    if (found.kind === 'key') return this.#currentWith(found.key) ?? { ...base, model: { ...model, apiKey: found.key } };
    if (found.kind === 'unusable') this.#reason = found.reason;
    // Once there was a key, work does not go to another model because it is gone.
    if (withKey !== undefined && this.#current === configured) return configured;
    return { ...base, model: { ...model, apiKey: undefined } };
  }

  /** The same object for all sessions that have the same key: there may be thousands. */
  #currentWith(key: string): ModelAccess | undefined {
    const { model } = this.#current;
    return model.kind === 'openai-compatible' && model.apiKey === key ? this.#current : undefined;
  }

  async #stored(baseUrl: string): Promise<FoundKey> {
    return (await this.#parts.keys?.find(baseUrl)) ?? { kind: 'none' };
  }

  #remote(): RemoteModel | undefined {
    const { model } = this.#parts.withKey ?? this.#parts.configured;
    return model.kind === 'openai-compatible' ? model : undefined;
  }
}

function needsKey(model: ModelConfig): boolean {
  return model.kind === 'openai-compatible' && model.dialect === 'deepseek' && model.apiKey === undefined;
}
