/**
 * What a log must be after whatever has happened: it opens, its turns are whole, no call ran or ended twice, no key began two turns, and
 * what it says was said the client has seen. A completed turn holds the whole text of its script, and ended as it was answered.
 */
import type { LogEvent } from '../../src/shared/events.ts';
import { EventLog } from '../../src/worker/log/event-log.ts';
import { wrongText } from './shown-text.ts';

interface Turn {
  tag: string | undefined;
  script: string;
  text: string;
  isSteered: boolean;
}

export interface Known {
  /** Which session's: its tags have the number. */
  readonly session: number;
  /** The tags that the client was shown; undefined where it could not see everything. */
  readonly seen: ReadonlySet<string> | undefined;
  /** What each prompt was answered. */
  readonly answers: ReadonlyMap<string, ReadonlySet<string>>;
  /** Nothing came between a turn's end and its answer. */
  readonly isExact: boolean;
}

export async function judgeLog(path: string, nonce: string, known: Known): Promise<readonly string[]> {
  const events: LogEvent[] = [];
  try {
    const log = await EventLog.open({
      path,
      lockPath: `${path.slice(0, -6)}.lock`,
      serverNonce: nonce,
      threadId: 0,
      onEvent: (event) => void events.push(event),
    });
    await log.close();
  } catch (error) {
    return [`${path} does not open: ${error instanceof Error ? error.message : String(error)}`];
  }
  return judgeEvents(events, known);
}

export function judgeEvents(events: readonly LogEvent[], { session, seen, answers, isExact }: Known): readonly string[] {
  const complaints: string[] = [];
  const calls = new Map<string, { results: number; starts: number }>();
  const keys = new Set<string>();
  let open: number | undefined;
  let last = 0;
  let turn: Turn = { tag: undefined, script: '', text: '', isSteered: false };
  const completed = new Set<string>();
  for (const [index, { seq, type, data }] of events.entries()) {
    if (seq !== index) complaints.push(`event ${index} has the number ${seq}`);
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- most events say nothing of what is judged here
    switch (type) {
      case 'turn/start':
        if (open !== undefined) complaints.push(`turn ${data.turn} begins within turn ${open}`);
        if (data.turn <= last) complaints.push(`turn ${data.turn} behind turn ${last}`);
        if (data.key !== undefined && keys.has(data.key)) complaints.push(`the key ${data.key} began a second turn`);
        if (data.key !== undefined) keys.add(data.key);
        open = data.turn;
        last = data.turn;
        turn = { tag: undefined, script: '', text: '', isSteered: false };
        break;
      case 'user/message':
        if (data.source === 'steer') turn.isSteered = true;
        if (data.source !== 'prompt') break;
        turn.script = data.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
        turn.tag = /\bS\d+P\d+/.exec(turn.script)?.[0];
        break;
      case 'turn/end':
        if (open !== data.turn) complaints.push(`turn ${data.turn} ends and has not begun`);
        open = undefined;
        if (data.reason.kind === 'completed' && turn.tag !== undefined) {
          completed.add(turn.tag);
          const wrong = turn.isSteered ? undefined : wrongText(turn.text, turn.script);
          if (wrong !== undefined) complaints.push(`${turn.tag} is completed, and its text ${wrong}`);
        }
        break;
      case 'tool/call':
        if (calls.has(data.callId)) complaints.push(`the call ${data.callId} stands twice`);
        calls.set(data.callId, { results: 0, starts: 0 });
        break;
      case 'tool/start':
      case 'tool/result': {
        const call = calls.get(data.callId);
        if (call === undefined) complaints.push(`${type} of ${data.callId} before its call`);
        else if (type === 'tool/start') call.starts += 1;
        else call.results += 1;
        if (call !== undefined && (type === 'tool/start' ? call.starts : call.results) > 1)
          complaints.push(`a second ${type} of ${data.callId}`);
        if (call !== undefined && type === 'tool/start' && call.results > 0) complaints.push(`${data.callId} starts behind its result`);
        break;
      }
      case 'assistant/message':
        turn.text += data.text;
        for (const [tag] of data.text.matchAll(/\bS\d+P\d+/g))
          if (seen !== undefined && !seen.has(tag)) complaints.push(`the log says ${tag}, which the client never saw`);
        break;
      default:
    }
  }
  for (const [callId, { results }] of calls) if (results !== 1) complaints.push(`the call ${callId} has ${results} results`);
  for (const [tag, how] of answers) {
    if (!tag.startsWith(`S${session}P`)) continue;
    if (how.has('end_turn') && !completed.has(tag)) complaints.push(`${tag} was answered end_turn, and its turn is not completed`);
    if (isExact && !how.has('end_turn') && completed.has(tag))
      complaints.push(`${tag} was answered ${[...how].join(', ')}, and its turn is completed`);
  }
  return complaints;
}
