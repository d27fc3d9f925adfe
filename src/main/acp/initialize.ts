/**
 * `initialize` and `authenticate`: what this server is and what works.
 */
import type { AuthMethod, InitializeResponse } from '@agentclientprotocol/sdk';
import type { ModelConfig, Profile, ServerConfig } from '../../shared/config.ts';
import { ServerError } from '../../shared/errors.ts';
import { extensionName, extensionVersion } from './meta/extension.ts';
import { promptKinds } from './prompt-content.ts';

/** The one protocol version this server speaks: it answers 1 whatever was asked for. */
const protocolVersion = 1;

/** Our one extension: what the server is doing, in numbers. See `sessions/server-status.ts`. */
export const statusMethod = '_status';

const environmentAuth: AuthMethod = {
  id: 'api-key',
  name: 'API key from the environment',
  description: 'Set DEEPSEEK_API_KEY (or the variable named by api_key_env) for the command that starts this server.',
};

/** Members of `_meta["dsh-acp"]` that are understood, by the request that they stand in. */
const extensions = {
  initialize: ['profile'],
  'session/new': ['budget', 'policy', 'persona', 'tools', 'outputSchema', 'depth', 'maxDepth', 'sampling', 'mode', 'env'],
  'session/resume': ['mode', 'env'],
  'session/prompt': ['budget', 'key', 'priority', 'traceparent'],
};

function extensionsFor({ lookOnly }: ServerConfig, isEditor: boolean): object {
  if (lookOnly) return { initialize: extensions.initialize, ...(isEditor ? { 'session/load': ['readOnly'] } : {}) };
  return isEditor ? { ...extensions, 'session/load': ['mode', 'env', 'readOnly'] } : extensions;
}

/** What a session of this server enforces by itself, for a parent agent that would delegate to it. */
const subagent = { persona: true, tools: true, depth: true, outputSchema: true };

/** Advertises only what works in the profile: a client of automation finds no way into browsing and history. */
export function initializeResponse(config: ServerConfig, profile: Profile): InitializeResponse {
  const isEditor = profile === 'editor';
  return {
    protocolVersion,
    agentInfo: { name: config.agentName, title: titleFor(config.session.model), version: config.agentVersion },
    agentCapabilities: {
      loadSession: isEditor,
      promptCapabilities: { image: promptKinds(config.session).images, audio: false, embeddedContext: true },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: {
        ...(isEditor ? { list: {}, additionalDirectories: {} } : {}),
        ...(config.lookOnly ? {} : { resume: {} }),
        close: {},
      },
      _meta: {
        [extensionName]: {
          version: extensionVersion,
          profile,
          isolation: config.isolation,
          promptQueueing: config.overlap === 'queue',
          status: statusMethod,
          extensions: extensionsFor(config, isEditor),
          subagent,
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
