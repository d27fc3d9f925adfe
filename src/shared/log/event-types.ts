/**
 * The event names at run time.
 *
 * The types live in `events.ts`; the reader and the schema's test need the same names as values. The compiler keeps both
 * equal, so a name can be neither forgotten nor invented here.
 */
import type { EventType } from '../events.ts';

export const eventTypes = {
  'thread/attached': true,
  'turn/start': true,
  'turn/end': true,
  'user/message': true,
  'command/run': true,
  'step/start': true,
  'step/end': true,
  'request/header': true,
  'assistant/chunk': true,
  'assistant/message': true,
  'tool/call': true,
  'tool/start': true,
  'tool/result': true,
  'permission/asked': true,
  'permission/decided': true,
  'mode/change': true,
  'options/change': true,
  'session/title': true,
  'mcp/status': true,
  'todo/write': true,
  'llm/retry': true,
  'llm/wait': true,
  'instructions/read': true,
  'subagent/start': true,
  'subagent/activity': true,
  'subagent/end': true,
  'history/pruned': true,
  'history/compacted': true,
  'file/snapshot': true,
  'undo/start': true,
  'workspace/observed': true,
  'history/rewound': true,
} as const satisfies Record<EventType, true>;

/** Whether this release knows the event. A log may hold others only if they are marked ignorable. */
export function isEventType(name: string): name is EventType {
  return Object.hasOwn(eventTypes, name);
}
