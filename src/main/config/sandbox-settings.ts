/** The settings of the sandbox, out of the table of settings. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { SandboxSettings } from '../../shared/sandbox.ts';
import { configError } from './config-error.ts';
import type { Settings } from './schema.ts';

/** @throws ServerError CONFIG_INVALID */
export function sandboxSettings(all: Settings): SandboxSettings {
  return {
    use: all.sandbox ?? 'auto',
    network: all.sandbox_network ?? 'ask',
    writable: (all.sandbox_writable ?? '')
      .split(':')
      .filter((path) => path !== '')
      .map(absolute),
    memoryMb: all.command_memory_mb ?? 0,
    maxProcesses: all.command_max_processes ?? 0,
  };
}

function absolute(given: string): string {
  const path = given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : given;
  if (isAbsolute(path)) return path;
  throw configError({
    key: 'sandbox_writable',
    expected: 'absolute paths, or such that begin with ~/, with : between them',
    where: 'the settings',
  });
}
