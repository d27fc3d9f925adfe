/** One session as a line of training data, in the form that a run's trajectories have. Nothing was checked, so there is no reward. */
import type { LogEvent, SessionHeader, TurnEndReason } from '../../../shared/events.ts';
import { readSessionLog } from '../../transcript/read-log.ts';
import { SessionFacts } from '../../transcript/session-facts.ts';
import { type Seen, seenInLog, type TrajectoryLine, type TrajectoryUsage, trajectoryTokens } from './trajectory-file.ts';

export type SessionTrajectory = Pick<TrajectoryLine, 'version' | 'id' | 'reward' | 'usage' | 'stop_reason'> & Seen;

/** Holds the conversation, up to the bound of a trajectory. @throws Error when the log cannot be read at all */
export async function sessionTrajectory(id: string, logPath: string): Promise<SessionTrajectory> {
  const facts = new SessionFacts();
  const { problem } = await readSessionLog(logPath, {
    onHeader: (header: SessionHeader) => facts.onHeader(header),
    onEvent: (event: LogEvent) => {
      try {
        facts.onEvent(event);
      } catch {
        // Data that is not what its type says: the trajectory is then not complete, and says so.
      }
    },
  });
  if (problem !== undefined && facts.header === undefined) throw new Error(problem);
  const seen = (await seenInLog({ logPath })) ?? nothingSeen;
  return { version: 1, id, reward: null, ...seen, usage: usageOf(facts), stop_reason: stopReason(facts.turns.at(-1)?.reason) };
}

const nothingSeen: Seen = { complete: false, compactions: 0, header_changed: false, messages: [], tools: [], model: null };

function usageOf({ tokens, steps, toolCalls }: SessionFacts): TrajectoryUsage {
  return { ...trajectoryTokens(tokens), steps, tool_calls: toolCalls };
}

/** As the protocol names it; `null` for a session whose last turn has not ended, or failed. */
function stopReason(reason: TurnEndReason | undefined): string | null {
  switch (reason?.kind) {
    case 'completed':
      return 'end_turn';
    case 'max-tokens':
      return 'max_tokens';
    case 'max-turn-requests':
      return 'max_turn_requests';
    case 'refusal':
      return 'refusal';
    case 'cancelled':
      return 'cancelled';
    case 'disposed':
    case 'error':
    case 'interrupted':
    case undefined:
    default:
      return null;
  }
}
