/** The part of main's services that is about the provider `self`. */
import type { MainServices } from '../../shared/thread-protocol.ts';
import type { SubagentApi } from '../../shared/subagent-protocol.ts';
import type { SelfProvider } from './self-provider.ts';

/** `self` is asked for at each call. */
export function subagentServices(self: () => SelfProvider): SubagentApi & Pick<MainServices, 'reportSubagentActivity'> {
  return {
    startSubagent: (request) => self().startSubagent(request),
    awaitSubagent: (owner, runId, seq, waitMs) => self().awaitSubagent(owner, runId, seq, waitMs),
    cancelSubagent: (owner, runId) => self().cancelSubagent(owner, runId),
    answerSubagent: (owner, runId, questionId, allow) => self().answerSubagent(owner, runId, questionId, allow),
    disposeSubagent: (owner, runId) => self().disposeSubagent(owner, runId),
    countSubagents: (owner) => self().countSubagents(owner),
    reportSubagentActivity: async (sessionId, activities) => self().take(sessionId, activities),
  };
}
