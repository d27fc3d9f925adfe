/**
 * Updates as a reader of the session sees them: how a text was cut into chunks makes no difference.
 */

const chunkKinds = new Set(['agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk']);

/** Joins neighbouring chunks of the same message and kind, and what was shown of calls before it was logged; the rest stays as it is, in order. */
export function mergedUpdates(updates: readonly any[]): any[] {
  const merged: any[] = [];
  for (const update of settledCards(updates, {})) {
    const last = merged.at(-1);
    const continues =
      chunkKinds.has(update.sessionUpdate) && last?.sessionUpdate === update.sessionUpdate && last.messageId === update.messageId;
    if (continues) merged[merged.length - 1] = { ...last, content: { ...last.content, text: last.content.text + update.content.text } };
    else merged.push(update);
  }
  return merged;
}

/** What a client that saw the session live has on its screen: a live prompt is not echoed, a replayed one is. */
export function withoutPrompts(updates: readonly any[]): any[] {
  return updates.filter((update) => update.sessionUpdate !== 'user_message_chunk');
}

export interface CardItems<T> {
  /** The update of an item; `undefined` for one that is something else. By default the item is the update. */
  readonly updateOf?: (item: T) => any;
  readonly withUpdate?: (item: T, update: any) => T;
}

/**
 * Items in which each card is as if nothing had been shown in advance: a draft is the call that it became, and pieces of running
 * output stand in the result. How many of them there are hangs on how fast the machine is.
 */
export function settledCards<T>(
  items: readonly T[],
  { updateOf = (item) => item, withUpdate = (_item, update) => update }: CardItems<T>,
): T[] {
  const settled: T[] = [];
  const places = new Map<string, number>();
  const started = new Set<string>();
  const written = new Map<string, string>();
  for (const item of items) {
    const update = updateOf(item);
    const id: string | undefined = update?.toolCallId;
    const place = id === undefined ? undefined : places.get(id);
    if (id === undefined || (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update')) settled.push(item);
    else if (place === undefined) {
      places.set(id, settled.length);
      settled.push(item);
    } else if (update.sessionUpdate === 'tool_call') settled[place] = item;
    else if (update.status === undefined && !started.has(id)) {
      const call = updateOf(settled[place]!);
      settled[place] = withUpdate(settled[place]!, withMembers(call, update));
    } else if (isRunningOutput(update)) {
      written.set(id, (written.get(id) ?? '') + (update._meta?.terminal_output?.data ?? ''));
    } else {
      if (update.status === 'in_progress') started.add(id);
      else if (update.status !== undefined) places.delete(id);
      settled.push(withUpdate(item, withOutput(update, update.status === 'in_progress' ? undefined : written.get(id))));
      if (update.status !== 'in_progress') written.delete(id);
    }
  }
  return settled;
}

/** The call as it is in a log that was never shown in advance: in the order of its members, too. */
function withMembers(call: any, { sessionUpdate: _kind, toolCallId: _id, ...members }: any): any {
  const { status, ...before } = call;
  const all = { ...before, ...members };
  const isNothing = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
  const order = ['sessionUpdate', 'toolCallId', 'title', 'name', 'kind', 'content', '_meta', 'locations', 'rawInput'];
  const kept = order.filter((name) => all[name] !== undefined && !isNothing(all[name])).map((name) => [name, all[name]]);
  return { ...Object.fromEntries(kept), status };
}

function isRunningOutput({ status, content, _meta }: any): boolean {
  if (status !== undefined) return false;
  return _meta?.terminal_output !== undefined || content?.at(-1)?.content?.text?.startsWith('```console') === true;
}

function withOutput(update: any, output: string | undefined): any {
  if (output === undefined || output === '') return update;
  const { terminal_output: last, ...meta } = update._meta;
  return { ...update, _meta: { terminal_output: { terminal_id: update.toolCallId, data: output + (last?.data ?? '') }, ...meta } };
}
