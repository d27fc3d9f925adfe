/**
 * Sessions that a server finds stored: each turn has read a file and answered. Nothing of it was ever summed up, so the model is sent
 * all of it.
 */
import { closeSync, openSync } from 'node:fs';
import { v7 as uuidv7 } from 'uuid';
import { type EventInput, logVersion } from '../../src/shared/events.ts';
import { createSessionFile } from '../../src/shared/log/session-paths.ts';
import { LogFileWriter } from '../../test/support/large-log.ts';

const usage = { inputTokens: 200, outputTokens: 100, cacheReadTokens: 64, reasoningTokens: 0 };
const question = 'Look at the file again and say what has changed in it since the last time that we spoke of it.';
const answer = 'It says the same as before but for one word. '.repeat(8);
const fileText = 'words of a file that was read\n'.repeat(20);

/** Stores a session of the directory `cwd` with `turns` turns; its id. */
export function storeSession(stateDir: string, cwd: string, turns: number): string {
  const id = uuidv7();
  const agent = { name: 'bench', version: '0' };
  const { log } = createSessionFile(stateDir, {
    type: 'session',
    version: logVersion,
    id,
    createdAt: new Date().toISOString(),
    cwd,
    agent,
  });
  const fd = openSync(log, 'a');
  try {
    const writer = new LogFileWriter(fd);
    writer.add({ type: 'thread/attached', data: { epoch: 1, threadId: 1, isolation: 'shared', pid: 1, sharedWith: 0 } });
    for (let turn = 1; turn <= turns; turn += 1) for (const event of turnEvents(turn)) writer.add(event);
    writer.flush();
  } finally {
    closeSync(fd);
  }
  return id;
}

function* turnEvents(turn: number): Generator<EventInput> {
  yield { type: 'turn/start', data: { turn } };
  yield {
    type: 'user/message',
    data: { turn, messageId: `u${turn}`, source: 'prompt', content: [{ type: 'text', text: question }] },
  };
  const call = { callId: `call-${turn}`, name: 'read', arguments: '{"file_path":"file.txt"}' };
  const message = { turn, reasoning: '', usage };
  yield { type: 'step/start', data: { turn, step: 1 } };
  yield {
    type: 'assistant/message',
    data: { ...message, step: 1, messageId: `a${turn}`, text: '', toolCalls: [call], finish: 'tool-calls' },
  };
  yield { type: 'tool/call', data: { turn, step: 1, ...call } };
  yield { type: 'tool/start', data: { turn, step: 1, callId: call.callId } };
  yield { type: 'tool/result', data: { turn, step: 1, callId: call.callId, text: fileText, isError: false } };
  yield { type: 'step/end', data: { turn, step: 1 } };
  yield { type: 'step/start', data: { turn, step: 2 } };
  yield { type: 'assistant/message', data: { ...message, step: 2, messageId: `b${turn}`, text: answer, toolCalls: [], finish: 'stop' } };
  yield { type: 'step/end', data: { turn, step: 2 } };
  yield {
    type: 'turn/end',
    data: { turn, reason: { kind: 'completed' }, usage: { ...usage, steps: 2, toolCalls: 1, elapsedMs: 1000 } },
  };
}

/** What `turns` such turns are in the requests of one who keeps nothing but messages. */
export function storedMessages(turns: number): object[] {
  return Array.from({ length: turns }, (_, index) => {
    const id = `call-${index + 1}`;
    const call = { id, type: 'function', function: { name: 'read', arguments: '{"file_path":"file.txt"}' } };
    return [
      { role: 'user', content: question },
      { role: 'assistant', content: '', tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: fileText },
      { role: 'assistant', content: answer },
    ];
  }).flat();
}
