/**
 * Codex behind Zed's adapter: one Rust process, started without the Node launcher of its package. It must know the model: for an unknown
 * one it says so in front of each answer. It is never to ask, and its commands are kept in no sandbox.
 */
import { arch } from 'node:os';
import { join } from 'node:path';
import { type Peer, writeSettings } from './peer.ts';

export const codexAcp: Peer = {
  name: 'codex-acp',
  packages: { '@zed-industries/codex-acp': '0.16.0' },
  runtime: 'native (Rust)',
  newerNode: false,
  setUp: ({ modules, home, origin }) => {
    writeSettings(
      home,
      '.codex/config.toml',
      `model = "gpt-5.4"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.local]
name = "local"
base_url = "${origin}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"

[analytics]
enabled = false
`,
    );
    const program = join(modules, `@zed-industries/codex-acp-linux-${arch()}/bin/codex-acp`);
    return { command: [program], env: { CODEX_HOME: join(home, '.codex'), LOCAL_KEY: 'none' } };
  },
};
