/**
 * Which secrets are known by value: the key of the model, what stands in settings and requests under names that look secret, and what
 * does in the environment of this server.
 */
import type { SessionSettings } from './config.ts';
import type { McpServerSpec } from './mcp-protocol.ts';
import { isSecretVariable } from './secret-variables.ts';
import { SecretValues } from './secret-values.ts';
import type { SessionTask } from './thread-protocol.ts';

type Named = Readonly<Record<string, string>>;
type SetUp = Pick<SessionSettings, 'model' | 'subagents' | 'environmentSecrets'>;
type Task = Pick<SessionTask, 'settings' | 'options' | 'mcpServers'>;

const ofTasks = new WeakMap<Task, SecretValues>();
/** Most sessions of a thread know the same ones: they share what finds them. */
let lastMade: { readonly key: string; readonly secrets: SecretValues } | undefined;

/** Of a session: those of the server, and what its client gave. */
export function sessionSecrets(task: Task): SecretValues {
  const known = ofTasks.get(task);
  if (known !== undefined) return known;
  const values = [...settingsSecrets(task.settings), ...clientSecrets(task.options.env, task.mcpServers)];
  const key = JSON.stringify(values);
  if (lastMade?.key !== key) lastMade = { key, secrets: new SecretValues(values) };
  ofTasks.set(task, lastMade.secrets);
  return lastMade.secrets;
}

/** What a client gave a session: variables for its commands, and what its MCP servers are reached with. */
export function clientSecrets(env: Named = {}, mcpServers: readonly McpServerSpec[] = []): string[] {
  const named = [env, ...mcpServers.map((server) => (server.type === 'stdio' ? server.env : server.headers))];
  return [...named.flatMap(secretOnes), ...mcpServers.flatMap((server) => (server.type === 'stdio' ? [] : urlSecrets(server.url)))];
}

/** The password of an URL, and members of its query under names that look secret. */
function urlSecrets(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { password, searchParams } = new URL(text);
  return [password, ...[...searchParams].flatMap(([name, value]) => (isSecretVariable(name, value) ? [value] : []))];
}

/** What the server itself was set up with. */
export function settingsSecrets({ model, subagents, environmentSecrets = [] }: SetUp): string[] {
  const key = model.kind === 'openai-compatible' && model.apiKey !== undefined ? [model.apiKey.trim()] : [];
  return [...key, ...subagents.flatMap(({ env }) => secretOnes(env)), ...environmentSecrets];
}

function secretOnes(named: Named): string[] {
  const secret = Object.entries(named).filter(([name, value]) => isSecretVariable(name, value));
  // `Bearer x` in a header is often repeated as `x` alone.
  return secret.flatMap(([, value]) => [value, value.replace(/^(?:bearer|basic|token)\s+/i, '')]);
}
