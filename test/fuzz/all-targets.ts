/** Everything that is fuzzed. */
import type { FuzzTarget } from './fuzz-target.ts';
import { framesTarget } from './targets/frames.ts';
import { logsTarget } from './targets/logs.ts';
import { modelStreamTarget } from './targets/model-stream.ts';
import { settingsTarget } from './targets/settings.ts';
import { supervisorTarget } from './targets/supervisor.ts';
import { toolCallsTarget } from './targets/tool-calls.ts';

export const allTargets: readonly FuzzTarget[] = [
  framesTarget,
  modelStreamTarget,
  logsTarget,
  toolCallsTarget,
  settingsTarget,
  supervisorTarget,
];
