/**
 * What a person is told of a session's MCP servers: only what they would miss. A notice where the client shows such things,
 * else a thought, since an answer of the agent it is not.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { EventData } from '../../shared/events.ts';
import { titleLine } from '../display/title-line.ts';
import { textUpdates } from './text-updates.ts';

const mostNamed = 10;

/** @param seq of the event, if it has one: the id of the thought is made of it */
export function mcpUpdates(data: EventData['mcp/status'], seq: number | undefined, notices: boolean): SessionUpdate[] {
  const told = wordsFor(data);
  if (told === undefined) return [];
  const { title, description } = told;
  if (notices) return [{ sessionUpdate: 'notice', severity: 'warning', title, description }];
  return textUpdates('agent_thought_chunk', `mcp-${seq ?? data.name}`, `${title} ${description}\n`);
}

function wordsFor({ name, state, leftOut = [], error }: EventData['mcp/status']): { title: string; description: string } | undefined {
  const server = `The MCP server "${titleLine(name, 'unnamed')}"`;
  switch (state) {
    case 'failed':
      return { title: `${server} could not be connected to; the session goes on without its tools.`, description: error ?? '' };
    case 'ended':
      return { title: `${server} has ended; it is started again when one of its tools is called.`, description: error ?? '' };
    case 'connected': {
      if (leftOut.length === 0) return undefined;
      const named = leftOut.slice(0, mostNamed).map(({ tool, why }) => `${titleLine(tool, 'a tool')}: ${why}`);
      const rest = leftOut.length > mostNamed ? [`and ${leftOut.length - mostNamed} more`] : [];
      return { title: `${server} has tools that are left out.`, description: [...named, ...rest].join('\n') };
    }
    default:
      return undefined;
  }
}
