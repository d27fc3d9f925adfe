/**
 * The frames of a run as text that is the same on every machine and in every run: one line a frame, session after session.
 *
 * Frames of different sessions have no order among each other, so each session's frames stand together, in their order. History that
 * is shown again is cut into chunks by time, so its neighbouring chunks are joined; live chunks are as the model sent them. Calls that
 * run side by side start in any order, so their updates are put into the order of the calls. The withdrawal of a question comes from the
 * thread by another way than updates, so it stands behind its question.
 */
import { mergedUpdates, settledCards } from '../support/merged-updates.ts';
import { projectRoot } from '../support/server-process.ts';
import type { Played, ReceivedFrame } from './play.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The lines of `expected/frames.jsonl`. */
export function transcript(played: Played): string[] {
  const names = ['-', ...played.sessions.values()];
  return names.flatMap((name) => {
    const own = played.received.filter(({ session }) => session === name);
    const scrub = new Scrubber(played);
    return behindQuestions(inCallOrder(joinReplays(settled(own)))).map((received) => scrub.line(received));
  });
}

/** What the first session's requests carry beside the messages: a change of it is a change of what every model is told. */
export function requestText(played: Played): string {
  const header = [...played.logs.values()][0]?.find(({ type }) => type === 'request/header');
  if (header?.type !== 'request/header') throw new Error('no request was logged');
  const { system, tools, toolsHash } = header.data;
  const lines = system.replaceAll(played.workspace, '<workspace>').replace(process.platform, '<platform>').split('\n');
  return JSON.stringify({ system: lines, tools, toolsHash }, null, 2);
}

function joinReplays(all: readonly ReceivedFrame[]): ReceivedFrame[] {
  const joined: ReceivedFrame[] = [];
  for (let at = 0; at < all.length; ) {
    const first = all[at]!;
    let end = at + 1;
    if (first.replayed) while (all[end]?.replayed === true) end += 1;
    if (!first.replayed) joined.push(first);
    else
      for (const update of mergedUpdates(all.slice(at, end).map(({ frame }) => frame.params.update)))
        joined.push(withUpdate(first, update));
    at = end;
  }
  return joined;
}

/** Whether a call was shown before it was whole, and a command before it had ended, hangs on the machine. */
function settled(all: readonly ReceivedFrame[]): ReceivedFrame[] {
  return settledCards(all, {
    updateOf: ({ frame }) => (frame.method === 'session/update' ? frame.params.update : undefined),
    withUpdate,
  });
}

function withUpdate(received: ReceivedFrame, update: object): ReceivedFrame {
  return { ...received, frame: { ...received.frame, params: { ...received.frame.params, update } } };
}

function behindQuestions(all: readonly ReceivedFrame[]): ReceivedFrame[] {
  const isWithdrawal = ({ frame }: ReceivedFrame): boolean => frame.method === '$/cancel_request';
  const withdrawals = all.filter(isWithdrawal);
  const asked = new Set(all.flatMap(({ frame }) => (frame.method === undefined ? [] : [frame.id])));
  const unasked = withdrawals.filter(({ frame }) => !asked.has(frame.params.requestId));
  const ordered = all
    .filter((one) => !isWithdrawal(one))
    .flatMap((one) => {
      const isQuestion = one.frame.method !== undefined && one.frame.id !== undefined;
      return isQuestion ? [one, ...withdrawals.filter(({ frame }) => frame.params.requestId === one.frame.id)] : [one];
    });
  return [...ordered, ...unasked];
}

/** Within a group of calls that overlap: all calls, then all starts, then all results, each in the order of the calls. */
function inCallOrder(all: readonly ReceivedFrame[]): ReceivedFrame[] {
  const ordered: ReceivedFrame[] = [];
  let group: ReceivedFrame[] = [];
  const order: string[] = [];
  const open = new Set<string>();
  const flush = (): void => {
    const rank = (received: ReceivedFrame): number => stageOf(received) * 1000 + order.indexOf(received.frame.params.update.toolCallId);
    ordered.push(...group.sort((a, b) => rank(a) - rank(b)));
    group = [];
  };
  for (const received of all) {
    const stage = stageOf(received);
    if (stage < 0) {
      flush();
      ordered.push(received);
      continue;
    }
    const { toolCallId } = received.frame.params.update;
    group.push(received);
    if (stage === 0) order.push(toolCallId);
    if (stage === 2) open.delete(toolCallId);
    else open.add(toolCallId);
    if (open.size === 0) flush();
  }
  flush();
  return ordered;
}

/** 0 for a new call, 1 for its start, 2 for its result, -1 for anything else. */
function stageOf({ frame }: ReceivedFrame): number {
  const update = frame.method === 'session/update' ? frame.params.update : undefined;
  if (update?.sessionUpdate === 'tool_call') return 0;
  if (update?.sessionUpdate !== 'tool_call_update') return -1;
  return update.status === 'in_progress' ? 1 : 2;
}

class Scrubber {
  readonly #played: Played;
  readonly #ids = new Map<string, string>();
  readonly #questions = new Map<unknown, string>();

  constructor(played: Played) {
    this.#played = played;
  }

  line({ frame, answers }: ReceivedFrame): string {
    return this.#scrub(JSON.stringify({ ...frame, ...this.#withId(frame, answers) }));
  }

  /** Numbers of requests count all sessions together, so they depend on what other sessions do. */
  #withId({ id, method, params }: ReceivedFrame['frame'], answers: string | undefined): object {
    if (answers !== undefined) return { id: `<${answers}>` };
    if (method !== undefined && id !== undefined) return { id: this.#question(id) };
    if (method === '$/cancel_request') return { params: { ...params, requestId: this.#question(params.requestId) } };
    return {};
  }

  #question(id: unknown): string {
    const known = this.#questions.get(id) ?? `<question ${this.#questions.size + 1}>`;
    this.#questions.set(id, known);
    return known;
  }

  #scrub(json: string): string {
    const { sessions, workspace, stateDir } = this.#played;
    return (
      json
        .replaceAll(workspace, '<workspace>')
        .replaceAll(stateDir, '<state>')
        .replaceAll(projectRoot, '<project>/')
        .replace(uuid, (id) => (sessions.has(id) ? `<${sessions.get(id)}>` : this.#id(id)))
        .replace(/("agentInfo":\{[^}]*"version":)"[^"]*"/, '$1"<version>"')
        .replace(/"(elapsedMs|firstTokenMs)":\d+/g, '"$1":"<ms>"')
        .replace(/"updatedAt":"[^"]*"/g, '"updatedAt":"<time>"')
        // The length of the workspace's path is part of it.
        .replace(/("sessionUpdate":"usage_update","used":)\d+/g, '$1"<tokens>"')
        .replace(/starts in [\d.]+ s;/g, 'starts in <n> s;')
    );
  }

  #id(id: string): string {
    const known = this.#ids.get(id) ?? `<id ${this.#ids.size + 1}>`;
    this.#ids.set(id, known);
    return known;
  }
}
