/**
 * What a person is told when a mode that refuses commands is chosen while commands run in the background: that these go on. Nothing
 * is ended unasked. Said once, live; it is no part of the history.
 */
import { randomUUID } from 'node:crypto';
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { BrokerApi } from '../../shared/broker-protocol.ts';
import type { PermissionMode } from '../../shared/events.ts';
import { permissionModes } from '../../shared/session-choices.ts';
import { askOnce } from '../permission/ask-once.ts';
import { textUpdates } from '../projection/text-updates.ts';

export interface BackgroundNoticeParts {
  readonly sessionId: string;
  readonly broker: Pick<BrokerApi, 'countBackground'>;
  /** The client shows notices. */
  readonly notices: boolean;
  readonly show: (update: SessionUpdate) => void;
}

/** The choice of a mode waits for this, so not for long. */
const longestWaitMs = 1000;

/** Fulfils once it is said, or there is nothing to say. Never rejects. */
export async function tellOfBackground(mode: PermissionMode, parts: BackgroundNoticeParts): Promise<void> {
  if (mode !== 'plan' && mode !== 'read-only') return;
  const { sessionId, broker, notices, show } = parts;
  const signal = new AbortController().signal;
  const counted = await askOnce(() => broker.countBackground(sessionId), { signal, timeoutMs: longestWaitMs });
  const count = counted.kind === 'answered' ? counted.answer : 0;
  if (count === 0) return;
  const title = `${count === 1 ? 'One background command goes' : `${count} background commands go`} on in the mode "${permissionModes[mode].name}".`;
  const description = `Started before, ${count === 1 ? 'it' : 'they'} may still change files. The agent can end ${count === 1 ? 'it' : 'each'} with bash_kill; closing the session ends all.`;
  if (notices) return show({ sessionUpdate: 'notice', severity: 'warning', title, description });
  for (const update of textUpdates('agent_message_chunk', randomUUID(), `${title} ${description}\n`)) show(update);
}
