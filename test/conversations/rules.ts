/**
 * What every client needs, as rules in words. Each says what is wrong, a line each; nothing where it holds.
 *
 * They are the habits of clients, not the text of the protocol: each stands for a client that hung, lost text or showed an error.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Entry, Recording } from './recording.ts';
import { validateAgentFrame } from '../support/acp-schema.ts';

export interface Rule {
  readonly says: string;
  readonly check: (recording: Recording) => readonly string[];
}

const opening = ['session/new', 'session/load', 'session/resume'];
const isCommandList = ({ update }: { readonly update: any }): boolean => update.sessionUpdate === 'available_commands_update';
const shown = (value: unknown): string => JSON.stringify(value).slice(0, 300);

/** Calls of sessions, each with its showings: live, and once more for each load; a showing is all that was sent about the call, in order. */
export function showings(recording: Recording): any[][][] {
  const calls = new Map<string, Map<number, any[]>>();
  for (const { at, sessionId, update } of recording.updates()) {
    if (typeof update.toolCallId !== 'string') continue;
    const loads = recording.entries.slice(0, at).filter((one) => isLoadOf(one, sessionId)).length;
    const key = `${sessionId} ${update.toolCallId}`;
    const call = calls.get(key) ?? new Map<number, any[]>();
    calls.set(key, call.set(loads, [...(call.get(loads) ?? []), update]));
  }
  return [...calls.values()].map((call) => [...call.values()]);
}

export const calls = (recording: Recording): any[][] => showings(recording).flat();

const isLoadOf = ({ from, frame }: Entry, sessionId: string): boolean =>
  from === 'client' && frame.method === 'session/load' && frame.params.sessionId === sessionId;

export const questions = (recording: Recording) =>
  recording.agentCalls().filter(({ frame }) => frame.method === 'session/request_permission');

/** @param capable what a client must have said for frames of these methods */
function withoutCapability(recording: Recording, capable: boolean, method: RegExp): string[] {
  if (capable) return [];
  return recording.agentCalls().flatMap(({ frame }) => (method.test(frame.method!) ? [`${frame.method} without the capability`] : []));
}

export const commonRules: readonly Rule[] = [
  {
    says: 'every line of stdout is one frame, valid by the schema of the SDK, also as the answer to its request',
    check: ({ violations, answers }) => [
      ...violations,
      ...answers.flatMap(({ request, response }) => validateAgentFrame(response, { method: request.method! })),
    ],
  },
  { says: 'stderr is quiet: agent-shell shows each line of it as an error', check: ({ stderr }) => (stderr === '' ? [] : [stderr]) },
  {
    says: 'each request has exactly one response: no spinner is left',
    check: ({ entries, answers }) => {
      const asked = entries.filter(({ from, frame }) => from === 'client' && frame.method !== undefined && frame.id !== undefined);
      const counts = asked.map(({ frame }) => [frame.id, answers.filter(({ request }) => request === frame).length] as const);
      return counts.flatMap(([id, count]) => (count === 1 ? [] : [`request ${id} has ${count} responses`]));
    },
  },
  {
    says: 'nothing about a new session comes before the response that names it: JetBrains hung there',
    check: (recording) =>
      recording.answersTo('session/new').flatMap(({ at, response }) => {
        const id = response.result?.sessionId;
        const early = recording.agentCalls().find((call) => call.at < at && call.frame.params?.sessionId === id && id !== undefined);
        return early === undefined ? [] : [`before the response: ${shown(early.frame)}`];
      }),
  },
  {
    says: 'a load shows the history before its response and nothing of it afterwards',
    check: (recording) =>
      recording.answersTo('session/load').flatMap(({ at, request, response }) => {
        if (response.error !== undefined) return [];
        const { sessionId } = request.params;
        const asked = recording.entries.findIndex(({ frame }) => frame === request);
        const history = recording.updates().filter((one) => one.sessionId === sessionId && one.at > asked && one.at < at);
        return history.some(({ update }) => update.sessionUpdate === 'user_message_chunk') ? [] : ['no prompt in the history'];
      }),
  },
  {
    says: 'no update comes while nothing of its session is asked, but the list of commands: agent-shell calls it a violation and loses the rest',
    check: (recording) => {
      const open = new Map<Entry['frame']['id'], string>();
      const late: string[] = [];
      for (const { from, frame } of recording.entries) {
        if (from === 'client' && frame.method !== undefined && frame.id !== undefined) open.set(frame.id, frame.params?.sessionId);
        if (from === 'agent' && frame.method === undefined) open.delete(frame.id);
        if (frame.method !== 'session/update' || isCommandList(frame.params)) continue;
        if (![...open.values()].includes(frame.params.sessionId)) late.push(shown(frame.params.update));
      }
      return late;
    },
  },
  {
    says: 'cards are announced first, go pending, in progress, ended, have a kind, a title of one line, absolute paths, and an end before the answer; chunks have message ids',
    check: (recording) => recording.screens().problems,
  },
  {
    says: 'a mode is told with the option of modes, and both say the same at every answer',
    check: (recording) => {
      const [modes, options] = [new Map<string, string>(), new Map<string, string>()];
      const answers = new Map(recording.answers.map((answer) => [answer.at, answer]));
      const take = (sessionId: string, { modes: all, currentModeId = all?.currentModeId, configOptions }: any): void => {
        const option = configOptions?.find(({ id }: any) => id === 'mode')?.currentValue;
        if (currentModeId !== undefined) modes.set(sessionId, currentModeId);
        if (option !== undefined) options.set(sessionId, option);
      };
      return recording.entries.flatMap(({ frame }, at) => {
        if (frame.method === 'session/update') take(frame.params.sessionId, frame.params.update);
        const answer = answers.get(at);
        const id = answer === undefined ? undefined : Recording.sessionOf(answer);
        if (id === undefined || answer?.response.result === undefined) return [];
        take(id, answer.response.result);
        return modes.get(id) === options.get(id) ? [] : [`${answer.request.method}: mode ${modes.get(id)}, option ${options.get(id)}`];
      });
    },
  },
  {
    says: 'each list of options is complete: the same options in the same order',
    check: (recording) => {
      const lists = [
        ...recording.answers.map(({ response }) => response.result?.configOptions),
        ...recording.updates().map(({ update }) => update.configOptions),
      ];
      const ids = lists.filter((list) => list !== undefined).map((list) => list.map(({ id }: any) => id));
      return ids.flatMap((list) => (isDeepStrictEqual(list, ids[0]) ? [] : [`${list} after ${ids[0]}`]));
    },
  },
  {
    says: 'the list of commands follows each opening',
    check: (recording) =>
      recording.answersTo(...opening).flatMap((answer) => {
        const sessionId = Recording.sessionOf(answer);
        const lists = recording.updates().filter((one) => one.sessionId === sessionId && one.at > answer.at && isCommandList(one));
        return answer.response.error !== undefined || lists.length > 0 ? [] : [`none behind ${answer.request.method}`];
      }),
  },
  {
    says: 'a question about a call comes after its card, is complete in itself, and can be answered once with yes and once with no',
    check: (recording) =>
      questions(recording).flatMap(({ at, frame }) => {
        const { sessionId, toolCall, options } = frame.params;
        const card = recording
          .updates()
          .find((one) => one.at < at && one.sessionId === sessionId && one.update.toolCallId === toolCall.toolCallId);
        const kinds = options.map(({ kind }: any) => kind);
        const told = toolCall.title && toolCall.kind && (toolCall.rawInput !== undefined || toolCall.content?.length > 0);
        return [
          ...(card?.update.sessionUpdate === 'tool_call' ? [] : ['asked before the card']),
          ...(told ? [] : [`not complete: ${shown(toolCall)}`]),
          ...(kinds.includes('allow_once') && kinds.includes('reject_once') ? [] : [`only ${kinds}`]),
          ...(new Set(kinds).size === kinds.length ? [] : [`two options of a kind (CodeCompanion keeps one): ${kinds}`]),
          ...(options.every(({ name, optionId }: any) => name && !/\n/.test(name) && optionId) ? [] : ['an option without a name']),
        ];
      }),
  },
  {
    says: 'nothing is asked of the client that it cannot do',
    check: (recording) => {
      const { fs, terminal, elicitation } = recording.capabilities;
      return [
        ...withoutCapability(recording, fs?.readTextFile === true, /^fs\/read/),
        ...withoutCapability(recording, fs?.writeTextFile === true, /^fs\/write/),
        ...withoutCapability(recording, terminal === true, /^terminal\//),
        ...withoutCapability(recording, elicitation?.form !== undefined || elicitation?.url !== undefined, /^elicitation\//),
      ];
    },
  },
  {
    says: 'notices, compactions, switches and terminals of the agent are shown to clients that know them, and to no other',
    check: (recording) => {
      const { session, _meta } = recording.capabilities;
      const text = recording.entries
        .filter(({ from }) => from === 'agent')
        .map(({ frame }) => JSON.stringify(frame))
        .join('\n');
      const kinds = new Set(recording.updates().map(({ update }) => update.sessionUpdate));
      return [
        ...(kinds.has('notice') && session?.notices === undefined ? ['a notice'] : []),
        ...(kinds.has('compaction_update') && session?.compaction === undefined ? ['a compaction'] : []),
        ...(/"type":"boolean"/.test(text) && session?.configOptions?.boolean === undefined ? ['a switch'] : []),
        ...(/"terminal_(info|output|exit)"/.test(text) && _meta?.terminal_output !== true ? ['a terminal'] : []),
      ];
    },
  },
  {
    says: 'an error is a sentence, with data.details for what is shown, and neither a stack nor a path of the program',
    check: ({ answers }) =>
      answers.flatMap(({ response: { error } }) => {
        if (error === undefined) return [];
        const isSaid =
          typeof error.data?.details === 'string' && error.data.details.length > 10 && !/\n|\[object|undefined/.test(error.message);
        return isSaid && !/\\n\s+at |node_modules|\/dist\//.test(JSON.stringify(error)) ? [] : [shown(error)];
      }),
  },
  {
    says: 'how full the window is is told at least once a turn of the model, in whole tokens, never more than it holds',
    check: (recording) => {
      const usages = recording.updates().filter(({ update }) => update.sessionUpdate === 'usage_update');
      const wrong = usages.filter(({ update: { used, size, cost } }) => !Number.isInteger(used) || used > size || (cost && !cost.currency));
      return wrong.map(({ update }) => shown(update));
    },
  },
  {
    says: 'a plan is whole each time: each entry with content, priority and status',
    check: (recording) =>
      recording
        .updates()
        .filter(({ update }) => update.sessionUpdate === 'plan')
        .flatMap(({ update }) => update.entries)
        .flatMap((entry: any) => (entry.content && entry.priority && entry.status ? [] : [shown(entry)])),
  },
  {
    says: 'a prompt that the client cancelled, and that did not end by itself, is answered cancelled and never with an error',
    check: (recording) =>
      recording.answersTo('session/prompt').flatMap(({ at, request, response }) => {
        const from = recording.entries.findIndex(({ frame }) => frame === request);
        const between = recording.entries.slice(from, at);
        const cancelled = between.some(
          (one) => one.frame.method === 'session/cancel' && one.frame.params.sessionId === request.params.sessionId,
        );
        return cancelled && response.error !== undefined ? [shown(response.error)] : [];
      }),
  },
];
