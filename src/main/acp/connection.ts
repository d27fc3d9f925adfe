/**
 * The connection as its client described it in `initialize`: what it can show, and how much of a session it wants to see.
 * Read when a session is made or opened, and fixed for that session then.
 */
import type { ClientCapabilities, InitializeRequest } from '@agentclientprotocol/sdk';
import type { Profile } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import type { ClientTraits } from '../../shared/thread-protocol.ts';
import type { ConnectionView } from '../sessions/session-table.ts';
import type { Credentials } from './auth/credentials.ts';
import { requestedProfile } from './meta/profile.ts';

export class Connection {
  readonly #defaultProfile: Profile;
  readonly #credentials: Pick<Credentials, 'access'>;
  #view: Omit<ConnectionView, 'access'>;

  /** @param defaultProfile the start option's, for a client that does not ask for one */
  constructor(defaultProfile: Profile, credentials: Pick<Credentials, 'access'>) {
    this.#defaultProfile = defaultProfile;
    this.#credentials = credentials;
    this.#view = { profile: defaultProfile, client: { terminalOutput: false } };
  }

  /** @throws ServerError INVALID_PARAMS for a profile that there is not; the connection stays as it was */
  initialize({ clientCapabilities }: InitializeRequest): void {
    const profile = requestedProfile(clientCapabilities) ?? this.#defaultProfile;
    this.#view = { profile, client: clientTraits(clientCapabilities) };
  }

  get view(): ConnectionView {
    return { ...this.#view, access: this.#credentials.access };
  }

  /** Whether a person can be asked by a form. */
  get asksPerson(): boolean {
    return this.profile === 'editor' && this.#view.client.elicitationForm === true;
  }

  get profile(): Profile {
    return this.#view.profile;
  }

  /** @throws ServerError METHOD_NOT_FOUND for a method that the automation profile does not have */
  refuseUnlessEditor(method: string): void {
    if (this.profile === 'editor') return;
    throw new ServerError('METHOD_NOT_FOUND', `Method not found: ${method}`, { data: { method } });
  }
}

/** A capability that is not said to be there is not there. */
function clientTraits(capabilities: ClientCapabilities | undefined): ClientTraits {
  const { fs, elicitation, session, _meta } = capabilities ?? {};
  return {
    terminalOutput: _meta?.['terminal_output'] === true,
    readTextFile: fs?.readTextFile === true,
    writeTextFile: fs?.writeTextFile === true,
    elicitationForm: isOffered(elicitation?.form),
    booleanOptions: isOffered(session?.configOptions?.boolean),
    notices: isOffered(session?.notices),
    compaction: isOffered(session?.compaction),
  };
}

/** Object markers: `{}` is supported, `null` and absent are not. */
function isOffered(marker: unknown): boolean {
  return typeof marker === 'object' && marker !== null;
}
