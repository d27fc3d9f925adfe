/**
 * Gemini CLI: a launcher and the CLI, both Node. Without `-m` it first asks a routing model. Its reader of streams takes a comment for
 * broken JSON, so the model server sends none.
 */
import { join } from 'node:path';
import { pathWith, type Peer, writeSettings } from './peer.ts';

export const geminiCli: Peer = {
  name: 'gemini-cli',
  packages: { '@google/gemini-cli': '0.61.0' },
  runtime: 'Node 24',
  newerNode: true,
  setUp: ({ modules, nodeBin, home, origin }) => {
    writeSettings(home, '.gemini/settings.json', {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
    });
    return {
      command: [join(nodeBin, 'node'), join(modules, '@google/gemini-cli/bundle/gemini.js'), '--acp', '-m', 'gemini-2.5-flash'],
      env: { PATH: pathWith(nodeBin), GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: origin },
    };
  },
};
