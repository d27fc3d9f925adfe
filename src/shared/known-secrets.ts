/** Which secrets are known by value: the key of the model, and what stands in settings and requests under names that look secret. */
import type { SessionSettings } from './config.ts';
import type { SessionTask } from './thread-protocol.ts';
import { isSecretVariable } from './secret-variables.ts';
import { SecretValues } from './secret-values.ts';

type Named = Readonly<Record<string, string>>;

/** Of a session: those of the server, and what its client gave. */
export function sessionSecrets({
  settings,
  options,
  mcpServers = [],
}: Pick<SessionTask, 'settings' | 'options' | 'mcpServers'>): SecretValues {
  const given = mcpServers.map((server) => (server.type === 'stdio' ? server.env : server.headers));
  return new SecretValues([...ofSettings(settings), ...[options.env ?? {}, ...given].flatMap(secretOnes)]);
}

/** What the server itself was set up with. */
export function settingsSecrets(settings: Pick<SessionSettings, 'model' | 'subagents'>): SecretValues {
  return new SecretValues(ofSettings(settings));
}

function ofSettings({ model, subagents }: Pick<SessionSettings, 'model' | 'subagents'>): string[] {
  const key = model.kind === 'openai-compatible' && model.apiKey !== undefined ? [model.apiKey.trim()] : [];
  return [...key, ...subagents.flatMap(({ env }) => secretOnes(env))];
}

function secretOnes(named: Named): string[] {
  const secret = Object.entries(named).filter(([name, value]) => isSecretVariable(name, value));
  // `Bearer x` in a header is often repeated as `x` alone.
  return secret.flatMap(([, value]) => [value, value.replace(/^(?:bearer|basic|token)\s+/i, '')]);
}
