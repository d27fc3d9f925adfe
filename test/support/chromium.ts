/** Headless Chromium, for looking at pages of ours. Tests go on without it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** Where it is installed, if it is. */
export const chromiumPath: string | undefined = (process.env['PATH'] ?? '')
  .split(':')
  .concat('/usr/bin')
  .flatMap((directory) => names.map((name) => join(directory, name)))
  .find((path) => existsSync(path));

export interface PictureSize {
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
}

/** Renders a local page into a PNG. Asks the network for nothing. @throws Error when no picture came of it */
export async function takePicture(page: string, file: string, { width, height, dark = false }: PictureSize): Promise<void> {
  if (chromiumPath === undefined) throw new Error('Chromium is not installed');
  const profile = mkdtempSync(join(tmpdir(), 'dsh-acp-chromium-'));
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  flags.push('--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--hide-scrollbars', `--user-data-dir=${profile}`);
  flags.push(`--window-size=${width},${height}`, `--screenshot=${file}`);
  if (dark) flags.push('--force-dark-mode', '--blink-settings=preferredColorScheme=0');
  const child = spawn(chromiumPath, [...flags, `file://${page}`], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  try {
    const [code] = await once(child, 'close');
    if (code !== 0 || !existsSync(file)) throw new Error(`Chromium made no picture of ${page} (exit ${code})`);
  } finally {
    clearTimeout(timer);
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Size of a PNG, from its head. @throws Error for what is none */
export function pngSize(file: string): { readonly width: number; readonly height: number; readonly bytes: number } {
  const bytes = readFileSync(file);
  if (bytes.toString('latin1', 1, 4) !== 'PNG') throw new Error(`${file} is no PNG`);
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20), bytes: bytes.length };
}
