/**
 * How piscina is set up for session threads.
 */
import type { Piscina } from 'piscina';
import type { CodeCache, SessionThreadData } from '../../shared/code-cache.ts';
import type { ServerConfig } from '../../shared/config.ts';
import { placementFor } from './placement.ts';

/** `entryPath` is the thread bundle. */
export function poolOptions({
  config,
  entryPath,
  codeCache,
}: {
  readonly config: ServerConfig;
  readonly entryPath: string;
  readonly codeCache: CodeCache;
}): ConstructorParameters<typeof Piscina>[0] {
  const shared = config.isolation === 'shared';
  return {
    filename: entryPath,
    minThreads: shared ? config.maxThreads : Math.min(config.spareThreads, config.maxThreads),
    maxThreads: config.maxThreads,
    concurrentTasksPerWorker: Number.MAX_SAFE_INTEGER,
    loadBalancer: placementFor(config.isolation, config.maxThreads),
    // The default ('sync') parks an idle thread in Atomics.wait: timers and ports of its sessions would stand still.
    atomics: 'disabled',
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    trackUnmanagedFds: true,
    env: threadEnvironment(),
    workerData: { codeCache } satisfies SessionThreadData,
    // A late, soft guard: most ways of filling a heap abort the process anyway, so sizes are bounded in code.
    // Of young memory a thread touches all that it may: 3 MB instead of 8 are 3.4 MB less for each session of its own, and no more CPU (`bench`).
    resourceLimits: { maxOldGenerationSizeMb: shared ? 4096 : 1024, maxYoungGenerationSizeMb: shared ? 64 : 3 },
  };
}

/** Session threads spawn nothing and read no keys from the environment: they get only what the runtime itself looks at. */
function threadEnvironment(): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of ['TZ', 'LANG', 'LC_ALL', 'NODE_EXTRA_CA_CERTS', 'HOME', 'TMPDIR']) {
    const value = process.env[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
