/**
 * What the rules must object to: changes of a recorded conversation, each as some agent has really done it. A rule that passes
 * everything would prove nothing.
 */
import type { Frame } from '../support/server-process.ts';
import type { Recorded } from './recording.ts';

export interface Tampering {
  /** How the rule begins that must object. */
  readonly rule: string;
  readonly name: string;
  readonly change: (recorded: Changeable) => void;
}

interface Changeable {
  frames: any[];
  readonly sent: { at: number; readonly frame: any }[];
  violations: string[];
  stderr: string;
}

export function tampered({ frames, sent, violations, stderr }: Recorded, { change }: Tampering): Recorded {
  const copy = structuredClone({ frames: [...frames], sent: [...sent], violations: [...violations], stderr });
  change(copy);
  return copy;
}

const updateOf = (frame: Frame): any => (frame.method === 'session/update' ? frame.params.update : {});
const at = (recorded: Changeable, what: (update: any, frame: any) => boolean): number => {
  const index = recorded.frames.findIndex((frame) => what(updateOf(frame), frame));
  if (index === -1) throw new Error('there is nothing of the kind to change');
  return index;
};
const first = (recorded: Changeable, what: (update: any, frame: any) => boolean): any => recorded.frames[at(recorded, what)];
const isAnswer = (_update: any, frame: any): boolean => frame.result?.stopReason !== undefined;
const isChunk = ({ sessionUpdate }: any): boolean => sessionUpdate === 'agent_message_chunk';
const isCard = ({ sessionUpdate }: any): boolean => sessionUpdate === 'tool_call';
const isQuestion = (_update: any, { method }: any): boolean => method === 'session/request_permission';
const drop = (recorded: Changeable, index: number): void => {
  recorded.frames.splice(index, 1);
  for (const one of recorded.sent) if (one.at > index) one.at -= 1;
};

export const tamperings: readonly Tampering[] = [
  {
    rule: 'every line of stdout',
    name: 'a member that the schema does not know',
    change: (recorded) => void (first(recorded, isAnswer).result.usage = {}),
  },
  { rule: 'stderr is quiet', name: 'a warning', change: (recorded) => void (recorded.stderr = '(node:1) Warning: x\n') },
  { rule: 'each request has', name: 'an answer that never came', change: (recorded) => drop(recorded, at(recorded, isAnswer)) },
  {
    rule: 'each request has',
    name: 'an answer that came twice',
    change: (recorded) => void recorded.frames.push(structuredClone(first(recorded, isAnswer))),
  },
  {
    rule: 'nothing about a new session',
    name: 'the list of commands before the response',
    change: (recorded) => {
      const response = at(recorded, (_update, { result }) => result?.sessionId !== undefined);
      const list = at(recorded, ({ sessionUpdate }) => sessionUpdate === 'available_commands_update');
      recorded.frames = recorded.frames.with(response, recorded.frames[list]).with(list, recorded.frames[response]);
    },
  },
  {
    rule: 'no update comes while',
    name: 'text behind the answer',
    change: (recorded) => void recorded.frames.push(structuredClone(first(recorded, isChunk))),
  },
  { rule: 'cards are announced', name: 'an update without its card', change: (recorded) => drop(recorded, at(recorded, isCard)) },
  { rule: 'cards are announced', name: 'a card without a kind', change: (recorded) => void delete updateOf(first(recorded, isCard)).kind },
  {
    rule: 'cards are announced',
    name: 'a title of two lines',
    change: (recorded) => void (updateOf(first(recorded, isCard)).title += '\nmore'),
  },
  {
    rule: 'cards are announced',
    name: 'a card that is never ended',
    change: (recorded) =>
      drop(
        recorded,
        at(recorded, ({ status }) => status === 'completed'),
      ),
  },
  {
    rule: 'cards are announced',
    name: 'a chunk without an id',
    change: (recorded) => void delete updateOf(first(recorded, isChunk)).messageId,
  },
  {
    rule: 'a mode is told',
    name: 'a mode without its option',
    change: (recorded) =>
      drop(
        recorded,
        at(recorded, ({ configOptions }) => configOptions?.some(({ currentValue }: any) => currentValue === 'accept-edits') === true),
      ),
  },
  {
    rule: 'each list of options',
    name: 'a list of the one that changed',
    change: (recorded) => void updateOf(first(recorded, ({ configOptions }) => configOptions !== undefined)).configOptions.pop(),
  },
  {
    rule: 'the list of commands follows',
    name: 'no list behind a load',
    change: (recorded) => {
      recorded.frames = recorded.frames.filter((frame) => updateOf(frame).sessionUpdate !== 'available_commands_update');
    },
  },
  {
    rule: 'a question about a call comes',
    name: 'a question that says nothing of its call',
    change: (recorded) => {
      const { params } = first(recorded, isQuestion);
      params.toolCall = { toolCallId: params.toolCall.toolCallId };
    },
  },
  {
    rule: 'a question about a call comes',
    name: 'no way to say no',
    change: (recorded) => void first(recorded, isQuestion).params.options.splice(1),
  },
  {
    rule: 'nothing is asked of the client',
    name: 'a file of a client that has none',
    change: (recorded) => void (recorded.sent[0]!.frame.params.clientCapabilities.fs = {}),
  },
  {
    rule: 'notices, compactions',
    name: 'a terminal for a client that knows none',
    change: (recorded) => void (updateOf(first(recorded, isCard))._meta = { terminal_info: { terminal_id: 'x' } }),
  },
  {
    rule: 'how full the window',
    name: 'more tokens than there are',
    change: (recorded) => void (updateOf(first(recorded, ({ sessionUpdate }) => sessionUpdate === 'usage_update')).used = 1e12),
  },
  {
    rule: 'a prompt that the client cancelled',
    name: 'an abort that is an error',
    change: (recorded) => {
      const answer = first(recorded, (_update, { result }) => result?.stopReason === 'cancelled');
      delete answer.result;
      answer.error = { code: -32603, message: 'This operation was aborted' };
    },
  },
  {
    rule: 'an error is a sentence',
    name: 'an error with a stack',
    change: (recorded) => {
      const answer = first(recorded, isAnswer);
      delete answer.result;
      answer.error = { code: -32603, message: 'Internal error', data: { details: 'Error: x\n    at run (/home/x/dist/main.js:1:1)' } };
    },
  },
  {
    rule: 'what asks about a change',
    name: 'a diff behind a text',
    change: (recorded) => {
      const isEdit = (update: any, frame: any): boolean => isQuestion(update, frame) && frame.params.toolCall.kind === 'edit';
      first(recorded, isEdit).params.toolCall.content.unshift({ type: 'content', content: { type: 'text', text: 'x' } });
    },
  },
  {
    rule: 'a load shows the cards',
    name: 'another title after a load',
    change: (recorded) => {
      const cards = recorded.frames.filter((frame) => isCard(updateOf(frame)));
      const again = cards.findLast((one) =>
        cards.some((other) => other !== one && updateOf(other).toolCallId === updateOf(one).toolCallId),
      );
      updateOf(again).title = 'Another title';
    },
  },
];
