/** The model server of the comparison, as its own process, which also looks after what a killed bench leaves behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { runMark } from '../process-tree.ts';
import type { WireStats } from './wire-server.ts';

export interface WireProcess {
  /** Without a path. */
  readonly origin: string;
  stats(): Promise<WireStats>;
  close(): Promise<void>;
}

/** `scratch` is removed when the bench has gone without doing so. */
export async function startWireProcess(scratch: string): Promise<WireProcess> {
  const script = fileURLToPath(new URL('./wire-server-main.js', import.meta.url));
  const child = spawn(process.execPath, [script, runMark, scratch], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [line] = await once(child.stdout, 'data');
  const { origin } = JSON.parse(String(line)) as { readonly origin: string };
  return {
    origin,
    stats: async () => (await (await fetch(`${origin}/control/stats`)).json()) as WireStats,
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
