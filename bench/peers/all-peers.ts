/** The agents that ours is compared with. */
import { codexAcp } from './codex-acp.ts';
import { geminiCli } from './gemini-cli.ts';
import { opencode } from './opencode.ts';
import type { Peer } from './peer.ts';
import { piAcp } from './pi-acp.ts';
import { qwenCode } from './qwen-code.ts';

export const allPeers: readonly Peer[] = [opencode, geminiCli, qwenCode, codexAcp, piAcp];
