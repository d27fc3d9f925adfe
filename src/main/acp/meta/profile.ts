/**
 * The profile that a connection asks for in `initialize`, in `clientCapabilities._meta["dsh-acp"]`.
 */
import * as z from 'zod/v4';
import type { Profile } from '../../../shared/config.ts';
import { readExtension, type WithMeta } from './extension.ts';

const schema = z.strictObject({ profile: z.enum(['automation', 'editor']).optional() });

/** `undefined` when the client leaves it to the start option. @throws ServerError INVALID_PARAMS */
export function requestedProfile(capabilities: WithMeta | undefined): Profile | undefined {
  return readExtension(capabilities, schema).profile;
}
