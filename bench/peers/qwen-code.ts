/**
 * Qwen Code: a launcher, the CLI and the CLI again, all Node. It makes requests of its own behind most prompts (memory, suggestions),
 * answered `ok`; their CPU counts as its own.
 */
import { join } from 'node:path';
import { pathWith, type Peer, writeSettings } from './peer.ts';

export const qwenCode: Peer = {
  name: 'qwen-code',
  packages: { '@qwen-code/qwen-code': '0.24.4' },
  runtime: 'Node 24',
  newerNode: true,
  setUp: ({ modules, nodeBin, home, origin }) => {
    writeSettings(home, '.qwen/settings.json', {
      security: { auth: { selectedType: 'openai' } },
      general: { enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
      model: { name: 'local-model' },
    });
    return {
      command: [join(nodeBin, 'node'), join(modules, '@qwen-code/qwen-code/cli-entry.js'), '--acp'],
      env: { PATH: pathWith(nodeBin), OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${origin}/v1`, OPENAI_MODEL: 'local-model' },
    };
  },
};
