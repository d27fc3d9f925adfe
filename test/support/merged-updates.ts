/**
 * Updates as a reader of the session sees them: how a text was cut into chunks makes no difference.
 */

const chunkKinds = new Set(['agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk']);

/** Joins neighbouring chunks of the same message and kind; everything else stays as it is, in order. */
export function mergedUpdates(updates: readonly any[]): any[] {
  const merged: any[] = [];
  for (const update of updates) {
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
