/**
 * `initialize`: what this server is and what works.
 */
import type { AuthMethod, InitializeResponse } from '@agentclientprotocol/sdk';
import type { ModelConfig, Profile, ServerConfig } from '../../shared/config.ts';
import { extensionName, extensionVersion } from './meta/extension.ts';
import { promptKinds } from './prompt-content.ts';
import { rewindMethod } from './rewind-method.ts';
import { steerMethod } from './steer-method.ts';

/** The one protocol version this server speaks: it answers 1 whatever was asked for. */
const protocolVersion = 1;

/** Our one extension: what the server is doing, in numbers. See `sessions/server-status.ts`. */
export const statusMethod = '_status';

/** Members of `_meta["dsh-acp"]` that are understood, by the request that they stand in. */
const extensions = {
  initialize: ['profile'],
  'session/new': ['budget', 'policy', 'persona', 'tools', 'outputSchema', 'depth', 'maxDepth', 'sampling', 'mode', 'env'],
  'session/resume': ['mode', 'env'],
  'session/prompt': ['budget', 'key', 'messageId', 'priority', 'traceparent'],
};

function extensionsFor({ lookOnly }: ServerConfig, isEditor: boolean): object {
  if (lookOnly) return { initialize: extensions.initialize, ...(isEditor ? { 'session/load': ['readOnly'] } : {}) };
  return isEditor ? { ...extensions, 'session/load': ['mode', 'env', 'readOnly'], 'session/fork': ['mode', 'env'] } : extensions;
}

/** `fork` is known to clients of a later ACP alone; others pass over it. */
const storedSessions = { delete: {}, fork: {} };

/** What a session of this server enforces by itself, for a parent agent that would delegate to it. */
const subagent = { persona: true, tools: true, depth: true, outputSchema: true };

/** Advertises only what works in the profile: a client of automation finds no way into browsing and history. */
export function initializeResponse(config: ServerConfig, profile: Profile, authMethods: AuthMethod[]): InitializeResponse {
  const isEditor = profile === 'editor';
  const kinds = promptKinds(config.session, profile);
  return {
    protocolVersion,
    agentInfo: { name: config.agentName, title: titleFor(config.session.model), version: config.agentVersion },
    agentCapabilities: {
      loadSession: isEditor,
      promptCapabilities: { image: kinds.images, audio: false, embeddedContext: kinds.resources },
      mcpCapabilities: { http: isEditor, sse: isEditor },
      sessionCapabilities: {
        ...(isEditor ? { list: {}, additionalDirectories: {} } : {}),
        ...(config.lookOnly ? {} : { resume: {} }),
        ...(isEditor && !config.lookOnly ? storedSessions : {}),
        close: {},
      },
      auth: { logout: {} },
      _meta: {
        [extensionName]: {
          version: extensionVersion,
          profile,
          isolation: config.isolation,
          promptQueueing: config.overlap === 'queue',
          status: statusMethod,
          ...(config.lookOnly ? {} : { steer: steerMethod, rewind: rewindMethod }),
          extensions: extensionsFor(config, isEditor),
          subagent,
        },
      },
    },
    authMethods,
  };
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
