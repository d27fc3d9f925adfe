/**
 * A tool's surroundings for tests: real files, and a real broker where the test brings one.
 */
import { join } from 'node:path';
import type { BrokerApi } from '../../../../src/shared/broker-protocol.ts';
import type { TodoEntry } from '../../../../src/shared/events.ts';
import { FileObservations } from '../../../../src/worker/tools/file-observations.ts';
import type { ToolContext } from '../../../../src/worker/tools/tool.ts';

export interface TestContext extends ToolContext {
  readonly plans: (readonly TodoEntry[])[];
}

/** A broker for tools that must not need one. */
const noBroker = new Proxy(
  {},
  {
    get: (_target, name) => () => {
      throw new Error(`the tool asked the broker for ${String(name)}`);
    },
  },
) as BrokerApi;

export function testContext(cwd: string, parts: Partial<ToolContext> = {}): TestContext {
  const plans: (readonly TodoEntry[])[] = [];
  return {
    sessionId: 'session-1',
    callId: 'call-1',
    cwd,
    signal: new AbortController().signal,
    broker: noBroker,
    files: new FileObservations(),
    spillDir: join(cwd, '..', 'spill'),
    commandTimeoutMs: 10_000,
    ripgrepPath: undefined,
    env: {},
    plans,
    writeTodos: (todos) => {
      plans.push(todos);
    },
    budgetLeft: () => ({}),
    ...parts,
  };
}
