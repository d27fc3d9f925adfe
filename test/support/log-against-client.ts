/**
 * Compares a stored log with what clients saw of its session: what the log projects to must be what was shown, and each may lack at
 * most the end of a turn that was cut off by the death of its thread or its server.
 *
 * By ids of messages and calls, so it does not matter how a text was cut, nor that drafts and running output are in no log.
 */
import type { ClientTraits } from '../../src/shared/thread-protocol.ts';
import type { LogEvent } from '../../src/shared/events.ts';
import type { SubagentProvider } from '../../src/shared/subagent-protocol.ts';
import { McpPresenters } from '../../src/worker/mcp/mcp-presenter.ts';
import { Projector } from '../../src/worker/projection/projector.ts';
import { everyExtra, toolRegistryFor } from '../../src/worker/tools/all-tools.ts';
import type { StoredSession } from './read-events.ts';
import { SessionPicture } from './session-picture.ts';

/** What one client saw of the session, from its beginning. */
export interface ClientView {
  readonly updates: readonly unknown[];
  readonly traits: ClientTraits;
  readonly profile: 'editor' | 'automation';
  /** It may not have got all: its server was killed, it stopped reading, or another went on with the session. */
  readonly mayLack: boolean;
}

interface Turn {
  /** Its end was logged when it came, by the thread that had run it. */
  readonly isWhole: boolean;
}

interface Projected {
  readonly picture: SessionPicture;
  readonly turnOf: ReadonlyMap<string, number>;
  readonly turns: ReadonlyMap<number, Turn>;
}

/** What is wrong, in words; nothing where log and client agree. */
export function differences(stored: StoredSession, view: ClientView): string[] {
  const log = project(stored, view);
  let client: SessionPicture;
  try {
    client = new SessionPicture().takeAll(view.updates);
  } catch (error) {
    return [`the client stumbles: ${error instanceof Error ? error.message : String(error)}`];
  }
  const [inLog, shown] = [log.picture.ids, client.ids];
  const [logged, seen] = [new Set(inLog), new Set(shown)];
  const both = inLog.filter((id) => seen.has(id));
  return [
    ...(both.join() === shown.filter((id) => logged.has(id)).join() ? [] : [`another order: ${both.join()} in the log`]),
    ...lacking(log, inLog, seen, view),
    ...unlogged(log, shown, logged),
    ...both.flatMap((id) => unlike(log, client, id, view)),
  ];
}

/** What the log has and the client has not: the end of one turn. */
function lacking({ turnOf, turns }: Projected, inLog: readonly string[], seen: ReadonlySet<string>, { mayLack }: ClientView): string[] {
  const last = inLog.findLastIndex((id) => seen.has(id));
  const lastTurn = turnOf.get(inLog[last] ?? '') ?? 0;
  return inLog
    .filter((id, at) => {
      const turn = turnOf.get(id) ?? 0;
      if (seen.has(id) || turns.get(turn)?.isWhole === false) return false;
      return !mayLack || (at < last && turn !== lastTurn);
    })
    .map((id) => `the client never saw ${id}`);
}

/** What the client has and the log has not: the end of a turn that was cut off. */
function unlogged({ turnOf, turns }: Projected, shown: readonly string[], logged: ReadonlySet<string>): string[] {
  return shown
    .filter((id, at) => {
      if (logged.has(id)) return false;
      const before = turnOf.get(shown.slice(0, at).findLast((one) => logged.has(one)) ?? '') ?? 0;
      const after = turnOf.get(shown.slice(at).find((one) => logged.has(one)) ?? '') ?? Number.POSITIVE_INFINITY;
      // Behind the last of a cut turn, or of one of which nothing at all was logged, and before the next turn begins.
      const cut = [...turns].some(([turn, { isWhole }]) => !isWhole && turn >= before && turn <= after);
      return !cut || before === after;
    })
    .map((id) => `${id} is in no log`);
}

function unlike({ picture, turnOf, turns }: Projected, client: SessionPicture, id: string, { mayLack }: ClientView): string[] {
  const [logged, seen] = [picture.shown(id), client.shown(id)];
  if (logged === seen) return [];
  const isWhole = turns.get(turnOf.get(id) ?? 0)?.isWhole !== false;
  const isLast = client.ids.at(-1) === id;
  if (!isWhole || (mayLack && isLast)) {
    // Of a card that was cut off, main tells the client what the next thread will log in words of its own.
    if (!picture.isMessage(id) || logged.startsWith(seen) || seen.startsWith(logged)) return [];
  }
  let at = 0;
  while (logged[at] === seen[at]) at += 1;
  const from = Math.max(0, at - 40);
  return [
    `${id} differs at ${at}: ${JSON.stringify(logged.slice(from, at + 80))} in the log, ${JSON.stringify(seen.slice(from, at + 80))} shown`,
  ];
}

function project({ header, events }: StoredSession, { traits, profile }: ClientView): Projected {
  const mcp = new McpPresenters();
  // Which agents there were does not show in a card.
  const registry = toolRegistryFor([{ name: 'self' } as SubagentProvider], everyExtra);
  const projector = new Projector({
    sessionId: header.id,
    cwd: header.cwd,
    profile,
    client: traits,
    tools: (name) => registry.get(name) ?? mcp.get(name),
    replay: true,
  });
  const picture = new SessionPicture();
  const turnOf = new Map<string, number>();
  const turns = new Map<number, Turn>();
  let turn = 0;
  for (const event of events) {
    mcp.observe(event);
    turn = turnNow(turn, event, turns);
    for (const update of projector.project(event) as any[]) {
      const id = update.messageId ?? update.toolCallId;
      if (id !== undefined && !turnOf.has(id)) turnOf.set(id, turn);
      picture.take(update);
    }
  }
  for (const update of projector.endCards()) picture.take(update);
  return { picture, turnOf, turns };
}

/** A turn is not whole until its end is there; one that ended with the log's disk, or was closed by whoever came next, never is. */
function turnNow(turn: number, event: LogEvent, turns: Map<number, Turn>): number {
  if (event.type === 'turn/start') {
    turns.set(event.data.turn, { isWhole: false });
    return event.data.turn;
  }
  if (event.type !== 'turn/end') return turn;
  const { reason } = event.data;
  const isCut = reason.kind === 'interrupted' || (reason.kind === 'error' && reason.code === 'LOG_WRITE_FAILED');
  turns.set(event.data.turn, { isWhole: !isCut });
  return turn;
}
