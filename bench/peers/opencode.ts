/**
 * OpenCode: one Bun process with a server in it. Makes one request for a title per session, answered `ok`. Its very first start in an
 * empty home takes seconds (it sets up its database), so the home is used once before it is measured.
 */
import { join } from 'node:path';
import { type Peer, writeSettings } from './peer.ts';

export const opencode: Peer = {
  name: 'opencode',
  packages: { 'opencode-ai': '1.18.33' },
  runtime: 'native (Bun)',
  newerNode: false,
  setUp: ({ modules, home, origin }) => {
    const local = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: `${origin}/v1`, apiKey: 'none' },
      models: { 'local-model': {} },
    };
    writeSettings(home, '.config/opencode/opencode.json', {
      model: 'local/local-model',
      small_model: 'local/local-model',
      autoupdate: false,
      share: 'disabled',
      provider: { local },
    });
    return { command: [join(modules, 'opencode-ai/bin/opencode.exe'), 'acp'], env: { OPENCODE_DISABLE_MODELS_FETCH: '1' } };
  },
};
