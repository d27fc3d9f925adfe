/**
 * `initialize` and `authenticate`: what this server is, what works, and what the client can show.
 */
import type { AuthMethod, InitializeRequest, InitializeResponse } from '@agentclientprotocol/sdk';
import type { ModelConfig, ServerConfig } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import type { ClientTraits } from '../../shared/thread-protocol.ts';

/** The one protocol version this server speaks: it answers 1 whatever was asked for. */
const protocolVersion = 1;

/** Our one extension: what the server is doing, in numbers. See `sessions/server-status.ts`. */
export const statusMethod = '_status';

const environmentAuth: AuthMethod = {
  id: 'api-key',
  name: 'API key from the environment',
  description: 'Set DEEPSEEK_API_KEY (or the variable named by api_key_env) for the command that starts this server.',
};

export function initializeResponse(config: ServerConfig): InitializeResponse {
  return {
    protocolVersion,
    agentInfo: { name: config.agentName, title: titleFor(config.session.model), version: config.agentVersion },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: false },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: { list: {}, close: {} },
      _meta: {
        'dsh-acp': {
          promptQueueing: config.overlap === 'queue',
          isolation: config.isolation,
          profile: config.profile,
          status: statusMethod,
        },
      },
    },
    authMethods: [environmentAuth],
  };
}

/** @throws ServerError INVALID_PARAMS for an unknown method, AUTH_REQUIRED when the key is missing */
export function authenticate(methodId: string, model: ModelConfig): void {
  if (methodId !== environmentAuth.id) {
    throw new ServerError('INVALID_PARAMS', 'methodId is none of the advertised methods.', { data: { expected: [environmentAuth.id] } });
  }
  requireCredentials(model);
}

/** @throws ServerError AUTH_REQUIRED when the chosen model cannot be reached without a key and there is none */
export function requireCredentials(model: ModelConfig): void {
  if (model.kind === 'openai-compatible' && model.dialect === 'deepseek' && model.apiKey === undefined) {
    throw new ServerError('AUTH_REQUIRED', 'The DeepSeek API needs a key, and none is set.');
  }
}

/** What the client can show. Read once per session, when it is created or loaded. */
export function clientTraits(request: InitializeRequest | undefined): ClientTraits {
  return { terminalOutput: request?.clientCapabilities?._meta?.['terminal_output'] === true };
}

function titleFor(model: ModelConfig): string {
  switch (model.kind) {
    case 'scripted':
      return 'dsh-acp (scripted demo model)';
    case 'replay':
      return 'dsh-acp (recorded stream)';
    case 'openai-compatible':
      return `dsh-acp (${model.model})`;
    default:
      return model satisfies never;
  }
}
