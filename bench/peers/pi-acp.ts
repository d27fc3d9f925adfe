/**
 * pi behind its adapter: an adapter process and a `pi` process for each session. In `session/new` it asks npm for a newer version and waits
 * for that, so npm is pointed at an address where nothing answers: without a network it would fail the same way.
 */
import { join } from 'node:path';
import { pathWith, type Peer, writeSettings } from './peer.ts';

export const piAcp: Peer = {
  name: 'pi-acp',
  packages: { 'pi-acp': '0.0.34', '@earendil-works/pi-coding-agent': '1.6.0' },
  runtime: 'Node 24',
  newerNode: true,
  // Fifty sessions take more than 4 GB.
  mostSessions: 50,
  setUp: ({ modules, nodeBin, home, origin }) => {
    const local = {
      baseUrl: `${origin}/v1`,
      api: 'openai-completions',
      apiKey: 'none',
      models: [{ id: 'local-model' }],
    };
    writeSettings(home, '.pi/agent/models.json', { providers: { local } });
    writeSettings(home, '.pi/agent/settings.json', { defaultProvider: 'local', defaultModel: 'local-model', quietStartup: true });
    return {
      command: [join(nodeBin, 'node'), join(modules, 'pi-acp/dist/index.js')],
      env: { PATH: pathWith(nodeBin, join(modules, '.bin')), npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' },
    };
  },
};
