/**
 * What a run means, checked apart from its frames: a snapshot that was taken of a broken server would else go on proving it right.
 */
import { mergedUpdates, withoutPrompts } from '../support/merged-updates.ts';
import { isDeepStrictEqual } from 'node:util';
import { assertLegalLog } from '../unit/worker/agent/legal-log.ts';
import type { Played } from './play.ts';
import type { CardMeaning, PromptEnd, Scenario } from './scenario.ts';

/** What is wrong, a line each; empty when the run means what the scenario says. */
export function meaningProblems(scenario: Scenario, played: Played): string[] {
  const { meaning } = scenario;
  const names = [...played.sessions.values()];
  const stated = [meaning.says, meaning.thinks, meaning.cards, meaning.results, meaning.plan, meaning.modelCalls];
  const strangers = stated.flatMap((map) => Object.keys(map ?? {})).filter((name) => !names.includes(name));
  return [
    ...played.faults,
    ...strangers.map((name) => `assert.json names a session ${name} that was never opened`),
    ...endProblems(meaning.ends, played),
    ...differs('the questions', played.permissions, meaning.permissions ?? []),
    ...fileProblems(meaning.files ?? {}, played),
    ...names.flatMap((name) => sessionProblems(name, scenario, played).map((problem) => `${name}: ${problem}`)),
  ];
}

function sessionProblems(name: string, { meaning, recordedCalls }: Scenario, played: Played): string[] {
  const updates = liveUpdates(name, played);
  const log = played.logs.get(name) ?? [];
  const results = log.flatMap(({ type, data }) => (type === 'tool/result' ? [data.isError ? (data.code ?? 'failed') : 'ok'] : []));
  const expectedResults = meaning.results?.[name] ?? results.map(() => 'ok');
  const calls = log.filter(({ type }) => type === 'step/start' || type === 'llm/retry').length;
  const plan = updates.findLast(({ sessionUpdate }) => sessionUpdate === 'plan');
  return [
    ...textProblems('the answer', textOf(updates, 'agent_message_chunk'), meaning.says?.[name]),
    ...textProblems('the thoughts', textOf(updates, 'agent_thought_chunk'), meaning.thinks?.[name]),
    ...cardProblems(cardsOf(updates), meaning.cards?.[name] ?? []),
    ...differs('the results in the log', results, expectedResults),
    ...differs('the plan', plan?.entries.map((entry: any) => `${entry.status} ${entry.content}`) ?? [], meaning.plan?.[name] ?? []),
    ...differs('the number of model calls', calls, meaning.modelCalls?.[name] ?? recordedCalls),
    ...openCardProblems(name, played),
    ...replayProblems(name, played),
    ...logProblems(log),
  ];
}

function endProblems(ends: readonly PromptEnd[], { prompts }: Played): string[] {
  if (ends.length !== prompts.length) return [`${prompts.length} prompts were sent, assert.json says how ${ends.length} end`];
  return prompts.flatMap(({ response }, index) => {
    const end = ends[index]!;
    const found = response?.result?.stopReason ?? response?.error;
    if (typeof end === 'string') return differs(`the end of prompt ${index + 1}`, found, end);
    const fits = found?.code === end.code && new RegExp(end.message).test(found?.message);
    return fits ? [] : [`prompt ${index + 1} ended with ${JSON.stringify(found)} and not with ${JSON.stringify(end)}`];
  });
}

function fileProblems(changes: Readonly<Record<string, string | null>>, { seed, files }: Played): string[] {
  const expected = new Map(seed);
  for (const [path, content] of Object.entries(changes)) {
    if (content === null) expected.delete(path);
    else expected.set(path, content);
    if (seed.get(path) === (content ?? undefined)) return [`assert.json says that ${path} changes, but states what it was before`];
  }
  const paths = new Set([...expected.keys(), ...files.keys()]);
  return [...paths].flatMap((path) => differs(`the file ${path}`, files.get(path), expected.get(path)));
}

function liveUpdates(name: string, { received }: Played): any[] {
  return received
    .filter(({ session, frame, replayed }) => session === name && frame.method === 'session/update' && !replayed)
    .map(({ frame }) => frame.params.update);
}

function textOf(updates: readonly any[], kind: string): string {
  return updates
    .filter(({ sessionUpdate }) => sessionUpdate === kind)
    .map(({ content }) => content.text)
    .join('');
}

/** Without an expectation there must be no text either. */
function textProblems(what: string, text: string, patterns: readonly string[] = []): string[] {
  if (patterns.length === 0) return text === '' ? [] : [`${what} is said by nothing in assert.json: ${JSON.stringify(text.slice(0, 200))}`];
  return patterns
    .filter((pattern) => !new RegExp(pattern, 's').test(text))
    .map((pattern) => `${what} ${JSON.stringify(text.slice(0, 500))} does not match /${pattern}/`);
}

/** Cards as a client has them on its screen after the last update. */
function cardsOf(updates: readonly any[]): any[] {
  const cards = new Map<string, any>();
  for (const update of updates) {
    if (update.sessionUpdate === 'tool_call') cards.set(update.toolCallId, update);
    else if (update.sessionUpdate === 'tool_call_update') cards.set(update.toolCallId, { ...cards.get(update.toolCallId), ...update });
  }
  return [...cards.values()];
}

function cardProblems(cards: readonly any[], expected: readonly CardMeaning[]): string[] {
  const found = cards.map(({ title, kind, status, content }, index) => ({
    title,
    kind,
    status,
    ...(expected[index]?.content === undefined ? {} : { content: (content ?? []).map((block: any) => block.type) }),
  }));
  return differs('the cards', found, expected);
}

/** No call may be open when its prompt is answered, and none may be touched after it. */
function openCardProblems(name: string, { received }: Played): string[] {
  const open = new Set<string>();
  const problems: string[] = [];
  for (const { frame, session, answers, replayed } of received) {
    if (session !== name || replayed) continue;
    if (answers?.endsWith('session/prompt') === true && open.size > 0) problems.push(`${[...open].join(', ')} were open at ${answers}`);
    const update = frame.method === 'session/update' ? frame.params.update : undefined;
    if (update?.sessionUpdate === 'tool_call') open.add(update.toolCallId);
    if (update?.sessionUpdate !== 'tool_call_update') continue;
    if (!open.has(update.toolCallId)) problems.push(`${update.toolCallId} was updated without being open`);
    if (['completed', 'failed'].includes(update.status)) open.delete(update.toolCallId);
  }
  return problems;
}

/** A loaded session looks like the live one. */
function replayProblems(name: string, { received }: Played): string[] {
  const shown: any[] = [];
  const problems: string[] = [];
  let replay: any[] = [];
  for (const { frame, session, answers, replayed } of received) {
    if (session !== name) continue;
    if (frame.method === 'session/update') (replayed ? replay : shown).push(frame.params.update);
    if (answers?.endsWith('session/load') !== true) continue;
    problems.push(...differs('what was loaded', withoutPrompts(mergedUpdates(replay)), mergedUpdates(shown)));
    replay = [];
  }
  return problems;
}

function logProblems(log: Parameters<typeof assertLegalLog>[0]): string[] {
  try {
    assertLegalLog(log);
    return [];
  } catch (error) {
    return [`the log is not legal: ${String(error)}`];
  }
}

function differs(what: string, found: unknown, expected: unknown): string[] {
  if (isDeepStrictEqual(found, expected)) return [];
  return [`${what}: found ${JSON.stringify(found, null, 1)}, expected ${JSON.stringify(expected, null, 1)}`];
}
