/**
 * The clients whose conversations are kept, and what each of them needs beyond what all do. What is said of a client was read in
 * its source or its reports, at the version that its file names.
 */
import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { calls, questions, type Rule, showings } from './rules.ts';
import { Recording } from './recording.ts';

export interface RecordedClient {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** Beyond the scripted model. */
  readonly args?: readonly string[];
}

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 300);
const commands = (recording: Recording): any[][] => calls(recording).filter(([call]) => call.name === 'bash');
const isEnd = ({ status }: any): boolean => status === 'completed' || status === 'failed';

/** What a card shows at its end. */
const last = (updates: readonly any[], member: string): any => updates.findLast((update) => update[member] !== undefined)?.[member];

const isConsole = (block: any): boolean => block?.content?.text?.startsWith('```console\n') === true;

const seen = (what: string, found: boolean): string[] => (found ? [] : [`the conversation holds no ${what}: it proves nothing`]);

const terminalOrder: Rule = {
  says: 'a command is a terminal: made by its tool_call, written to by updates, left once with its exit, and never also told as text',
  check: (recording) => [
    ...seen('command', commands(recording).length > 0),
    ...commands(recording).flatMap((updates) => {
      const id = updates[0].toolCallId;
      const made = updates.filter(({ _meta }) => _meta?.terminal_info !== undefined);
      const exits = updates.flatMap((update, index) => (update._meta?.terminal_exit === undefined ? [] : [index]));
      const outputs = updates.flatMap((update, index) => (update._meta?.terminal_output === undefined ? [] : [index]));
      const wasRun = updates.some(({ status }) => status === 'in_progress');
      const blocks = updates.flatMap(({ content }) => content ?? []);
      const info = made[0]?._meta.terminal_info;
      return [
        ...(made.length === 1 && made[0].sessionUpdate === 'tool_call' ? [] : [`${id}: ${made.length} terminals, or one in an update`]),
        ...(made[0]?.content?.some((block: any) => block.type === 'terminal' && block.terminalId === info.terminal_id)
          ? []
          : [`${id}: not in content`]),
        ...(info?.cwd === undefined || isAbsolute(info.cwd) ? [] : [`${id}: cwd ${info.cwd}`]),
        ...(exits.length === 1 || (exits.length === 0 && !wasRun) ? [] : [`${id}: ${exits.length} exits`]),
        ...(outputs.every((index) => index <= (exits[0] ?? Infinity)) ? [] : [`${id}: output behind the exit`]),
        ...(exits.every((index) => isEnd(updates[index])) ? [] : [`${id}: an exit that is not the end`]),
        ...(blocks.some((block: any) => block.content?.text?.includes('```console')) ? [`${id}: told as text, too`] : []),
      ];
    }),
  ],
};

const editsAreDiffs: Rule = {
  says: 'what asks about a change shows the diff first: CodeCompanion looks at the first content alone',
  check: (recording) => {
    const edits = questions(recording).filter(({ frame }) => frame.params.toolCall.kind === 'edit');
    return [
      ...seen('question about a change', edits.length > 0),
      ...edits.flatMap(({ frame: { params } }) => (params.toolCall.content?.[0]?.type === 'diff' ? [] : [shown(params.toolCall.content)])),
    ];
  },
};

const shortTitles: Rule = {
  says: 'the first 60 characters of a title say what it is about: menus and notifications cut there',
  check: (recording) =>
    calls(recording).flatMap((updates) => {
      const title: string = last(updates, 'title');
      const [path] = (last(updates, 'locations') ?? []).map(({ path }: any) => path.split('/').at(-1));
      const isFile = ['read', 'edit'].includes(last(updates, 'kind')) && path !== undefined;
      return title.trim() === title && (!isFile || title.slice(0, 60).includes(path)) ? [] : [title];
    }),
};

const textOfCommands: Rule = {
  says: 'what a command wrote is text in a fenced block, for a client that has no terminals',
  check: (recording) => [
    ...seen(
      'command',
      commands(recording).some((updates) => last(updates, 'status') === 'completed'),
    ),
    ...commands(recording)
      .filter((updates) => last(updates, 'status') === 'completed')
      .flatMap((updates) => (isConsole(last(updates, 'content')?.[0]) ? [] : [shown(updates.at(-1))])),
  ],
};

const cancelled: Rule = {
  says: 'a cancel is answered within two seconds and a half of acpx, with cancelled',
  check: (recording) => {
    const reasons = recording.answersTo('session/prompt').map(({ response }) => response.result?.stopReason);
    return seen('cancelled prompt', reasons.includes('cancelled'));
  },
};

const sameAfterLoad: Rule = {
  says: 'a load shows the cards that were there live: the same titles, kinds, diffs, places and ends',
  check: (recording) => {
    const names = ['title', 'kind', 'status', 'locations', 'content', 'rawInput'];
    const card = (updates: any[]): unknown => Object.fromEntries(names.map((name) => [name, last(updates, name)]));
    const shownTwice = showings(recording).filter((call) => call.length > 1);
    return [
      ...seen('card that was loaded', shownTwice.length > 0),
      ...shownTwice.flatMap(([live, ...loaded]) =>
        loaded.flatMap((again) =>
          isDeepStrictEqual(card(again), card(live!)) ? [] : [`${shown(card(live!))} became ${shown(card(again))}`],
        ),
      ),
    ];
  },
};

const notFound: Rule = {
  says: 'a session that is gone is -32002, upon which acpx begins a new one',
  check: (recording) => {
    const codes = recording.answersTo('session/load', 'session/resume').map(({ response }) => response.error?.code);
    return seen('load of a session that is gone', codes.includes(-32002));
  },
};

const failure: Rule = {
  says: 'a failed turn is an error with what happened in data.details',
  check: (recording) =>
    seen(
      'failed prompt',
      recording.answersTo('session/prompt').some(({ response }) => response.error !== undefined),
    ),
};

export const recordedClients: readonly RecordedClient[] = [
  {
    name: 'zed',
    rules: [
      terminalOrder,
      sameAfterLoad,
      cancelled,
      failure,
      {
        says: 'modes stand in the answer that opens a session, else Zed logs every change of them',
        check: (recording) =>
          recording
            .answersTo('session/new', 'session/load')
            .flatMap(({ response }) => (response.result?.modes?.availableModes?.length > 0 ? [] : [shown(response)])),
      },
      {
        says: 'the worktrees beyond the first belong to the session when it is made and when it is loaded, and the list names them',
        check: (recording) => {
          const hello = recording.answersTo('initialize')[0]?.response.result.agentCapabilities;
          const asked = recording.requests('session/new')[0]?.params.additionalDirectories;
          const listed = recording.answersTo('session/list').flatMap(({ response }) => response.result.sessions);
          return [
            ...(hello?.sessionCapabilities.additionalDirectories === undefined ? ['not advertised'] : []),
            ...(listed.every((one: any) => one.additionalDirectories === undefined || shown(one.additionalDirectories) === shown(asked))
              ? []
              : [shown(listed)]),
          ];
        },
      },
      {
        says: 'the title of a thread comes with its first turn, and the list has it',
        check: (recording) => {
          const titles = recording
            .updates()
            .flatMap(({ update }) => (update.sessionUpdate === 'session_info_update' ? [update.title] : []));
          const listed = recording
            .answersTo('session/list')
            .flatMap(({ response }) => response.result.sessions.map(({ title }: any) => title));
          return titles.length > 0 && listed.includes(titles[0]) ? [] : [shown({ titles, listed })];
        },
      },
      {
        says: 'a missing key opens the sign-in: -32000',
        check: (recording) =>
          seen(
            'refused key',
            recording.answersTo('session/prompt').some(({ response }) => response.error?.code === -32_000),
          ),
      },
      {
        says: 'what the person typed and did not save is what the agent reads',
        check: (recording) => seen('unsaved text in what was read', JSON.stringify(recording.updates()).includes('typed and not saved')),
      },
    ],
  },
  { name: 'codecompanion', rules: [editsAreDiffs, shortTitles, textOfCommands, sameAfterLoad, cancelled] },
  {
    name: 'agent-shell',
    rules: [textOfCommands, cancelled, failure],
  },
  {
    name: 'acpx',
    rules: [
      notFound,
      cancelled,
      sameAfterLoad,
      {
        says: 'by its kind a read is allowed and a command is not; nobody has to guess it from the first word of the title',
        check: (recording) => {
          const outcomes = questions(recording).map(({ frame }) => {
            const { toolCallId, kind } = frame.params.toolCall;
            const end = recording.updates().findLast(({ update }) => update.toolCallId === toolCallId && isEnd(update));
            return [kind, end?.update.status];
          });
          return [
            ...seen(
              'question about a read',
              outcomes.some(([kind]) => kind === 'read'),
            ),
            ...seen(
              'question about a command',
              outcomes.some(([kind]) => kind === 'execute'),
            ),
            ...outcomes.flatMap(([kind, status]) =>
              (status === 'completed') === ['read', 'search'].includes(kind) ? [] : [`${kind} ${status}`],
            ),
          ];
        },
      },
    ],
  },
  {
    name: 'jetbrains',
    rules: [
      sameAfterLoad,
      {
        says: 'the commands are told behind the first response of a session and not in front of it: an old client dropped what came too early',
        check: (recording) =>
          recording.answersTo('session/new').flatMap((answer) => {
            const id = Recording.sessionOf(answer);
            const first = recording.agentCalls().find(({ frame }) => frame.params?.sessionId === id);
            return first !== undefined && first.at > answer.at && first.frame.params.update?.sessionUpdate === 'available_commands_update'
              ? []
              : [shown(first)];
          }),
      },
      {
        says: 'a question about what a subagent wants hangs on a card that is there',
        check: (recording) => seen('question', questions(recording).length > 0),
      },
      {
        says: 'an MCP server that the IDE hands over and that does not start costs neither the session nor its prompts',
        check: (recording) => [
          ...seen(
            'MCP server',
            recording.requests('session/new').some(({ params }) => params.mcpServers.length > 0),
          ),
          ...recording.answersTo('session/new').flatMap(({ response }) => (response.result === undefined ? [shown(response)] : [])),
        ],
      },
    ],
  },
  {
    name: 'toad',
    rules: [
      failure,
      sameAfterLoad,
      {
        says: 'a mode that the agent changes is told: its picker follows current_mode_update',
        check: (recording) =>
          seen(
            'change of mode',
            recording.updates().some(({ update }) => update.sessionUpdate === 'current_mode_update'),
          ),
      },
      {
        says: 'the plan is shown while it is worked on',
        check: (recording) =>
          seen(
            'plan',
            recording.updates().some(({ update }) => update.sessionUpdate === 'plan' && update.entries.length > 0),
          ),
      },
    ],
  },
];
