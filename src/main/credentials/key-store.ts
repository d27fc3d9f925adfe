/**
 * Stored keys of model servers: in the keyring where there is one that works, else in a file of the user's alone.
 *
 * The file is the index in both cases, so whoever asks for a key needs the keyring only where the file points there, and sees
 * at once what another process has stored or removed.
 */
import { unlinkSync } from 'node:fs';
import { readCredentials, type StoredKey, writeCredentials } from './credentials-file.ts';
import type { Keyring } from './keyring.ts';

export type FoundKey =
  | { readonly kind: 'key'; readonly key: string; readonly from: string }
  | { readonly kind: 'none' }
  /** There should be one. `reason` is for people and holds no key. */
  | { readonly kind: 'unusable'; readonly reason: string };

export class KeyStore {
  readonly path: string;
  /** Loaded when it is needed: most starts never come so far. */
  readonly #keyring: () => Promise<Keyring>;
  /** What the keyring answered, until the file changes. */
  #fromKeyring: { readonly stamp: string; readonly baseUrl: string; readonly key: string } | undefined;

  /** @param path of the file; made when the first key is stored */
  constructor(path: string, keyring: () => Promise<Keyring> = loadKeyring) {
    this.path = path;
    this.#keyring = keyring;
  }

  /** Whether a key is stored for the server, without asking the keyring; in words why not, where that is not plain. */
  has(baseUrl: string): { readonly stored: boolean; readonly reason?: string } {
    const read = readCredentials(this.path);
    return read.kind === 'unusable' ? { stored: false, reason: read.reason } : { stored: read.keys.has(baseUrl) };
  }

  /** Never rejects. */
  async find(baseUrl: string): Promise<FoundKey> {
    const read = readCredentials(this.path);
    if (read.kind === 'unusable') return read;
    const stored = read.keys.get(baseUrl);
    if (stored === undefined) return { kind: 'none' };
    if ('key' in stored) return { kind: 'key', key: stored.key, from: this.path };
    const { stamp } = read;
    const known = this.#fromKeyring;
    const key = known?.stamp === stamp && known.baseUrl === baseUrl ? known.key : await (await this.#keyring()).find(baseUrl);
    if (key === undefined) return { kind: 'unusable', reason: 'the stored key is in the keyring, which does not give it (is it locked?)' };
    this.#fromKeyring = { stamp, baseUrl, key };
    return { kind: 'key', key, from: 'the keyring' };
  }

  /** Says where it is now. @throws Error when the file is not usable, or cannot be written */
  async store(baseUrl: string, key: string): Promise<string> {
    const keys = this.#readForChange();
    const inKeyring = await (await this.#keyring()).store(baseUrl, key);
    writeCredentials(this.path, new Map<string, StoredKey>([...keys, [baseUrl, inKeyring ? { keyring: true } : { key }]]));
    return inKeyring ? 'the keyring' : this.path;
  }

  /** Says whether there was one. @throws as {@link store} */
  async remove(baseUrl: string): Promise<boolean> {
    const keys = this.#readForChange();
    const stored = keys.get(baseUrl);
    if (stored === undefined) return false;
    keys.delete(baseUrl);
    if (keys.size === 0) unlinkSync(this.path);
    else writeCredentials(this.path, keys);
    this.#fromKeyring = undefined;
    if ('keyring' in stored) await (await this.#keyring()).remove(baseUrl);
    return true;
  }

  /** A file that is not used must not be written over either: it may be somebody's. */
  #readForChange(): Map<string, StoredKey> {
    const read = readCredentials(this.path);
    if (read.kind === 'unusable') throw new Error(read.reason);
    return new Map(read.keys);
  }
}

async function loadKeyring(): Promise<Keyring> {
  return (await import('./keyring.ts')).secretToolKeyring();
}
