/**
 * What lets a session delegate: the agents it may still use, and the runs over whoever runs them.
 */
import type { PermissionMode } from '../../shared/events.ts';
import { sessionSecrets } from '../../shared/known-secrets.ts';
import { selfProvider, type SubagentProvider } from '../../shared/subagent-protocol.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import { SubagentQuestions } from '../permission/subagent-questions.ts';
import type { RunEvent } from '../subagents/subagent-run.ts';
import { SubagentRuns } from '../subagents/subagent-runs.ts';
import { CleanTexts } from './clean-texts.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

/** The agents below whose greatest depth the session stands; none once its own cap is reached. */
export function usableSubagents({ settings, options }: SessionTask): readonly SubagentProvider[] {
  const { depth = 0, maxDepth: cap = Infinity } = options;
  return settings.subagents.filter(({ maxDepth }) => depth < Math.min(maxDepth, cap));
}

export interface SessionSubagentsParts {
  readonly journal: SessionJournal;
  readonly mode: () => PermissionMode;
  /** Hears of each change of the mode, once it holds. */
  readonly onModeSet: (listener: () => void) => void;
  readonly agent: () => ReactLoopAgent;
}

/** The runs of a session; none can be started where no agent is left to it, but those of its log are known. */
export function createSubagentRuns(task: SessionTask, thread: ThreadContext, parts: SessionSubagentsParts): SubagentRuns {
  const { sessionId, cwd, spillDir, settings, options } = task;
  const { main, broker, outbox } = thread;
  const { journal, mode, onModeSet, agent } = parts;
  const questions = new SubagentQuestions({
    sessionId,
    timeoutMs: shortest(options.policy?.askTimeoutMs, settings.policy?.askTimeoutMs) ?? settings.permissionTimeoutMs,
    mode,
    hasPolicy: options.policy !== undefined || settings.policy !== undefined,
    journal,
    ask: (request) => main.requestPermission(sessionSecrets(task).without(request)),
    withdraw: (requestKey) => main.withdrawPermission(sessionId, requestKey),
    flush: () => outbox.flush(),
  });
  onModeSet(() => questions.modeChanged());
  return new SubagentRuns({
    sessionId,
    cwd,
    spillDir,
    depth: options.depth ?? 0,
    maxDepth: options.maxDepth,
    providers: usableSubagents(task),
    apiOf: (provider) => (provider === selfProvider ? main : broker),
    turn: () => agent().turn,
    mode,
    record: cleanRecord(journal, new CleanTexts(sessionSecrets(task))),
    chargeUsage: (usage) => agent().addSubagentUsage(usage),
    notice: (text) => agent().notice(text),
    ask: (asker, question, signal) => questions.ask(asker, question, signal),
  });
}

/** What a child says is logged in pieces, and a secret may lie in two of them. */
function cleanRecord(journal: Pick<SessionJournal, 'append'>, texts: CleanTexts): (event: RunEvent) => void {
  return (event) => {
    if (event.type === 'subagent/activity' && event.data.activity.kind === 'text') {
      const text = texts.take(event.data.runId, event.data.activity.text);
      journal.append({ type: event.type, data: { ...event.data, activity: { kind: 'text', text } } });
      return;
    }
    const { callId, runId } = event.data;
    const text = event.type === 'subagent/end' ? texts.end(runId) : '';
    if (text !== '') journal.append({ type: 'subagent/activity', data: { callId, runId, activity: { kind: 'text', text } } });
    journal.append(event);
  };
}

function shortest(...times: readonly (number | undefined)[]): number | undefined {
  const given = times.filter((time) => time !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}
