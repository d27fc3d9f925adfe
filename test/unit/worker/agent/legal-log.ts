/**
 * The rules that every log of an agent obeys, whatever cut its turns short. Throws at the first line that breaks one.
 */
import assert from 'node:assert/strict';
import type { LogEvent } from '../../../../src/shared/events.ts';

interface Call {
  step: string;
  called: boolean;
  started: boolean;
  answered: boolean;
}

export function assertLegalLog(events: readonly LogEvent[], options: { open?: boolean } = {}): void {
  const calls = new Map<string, Call>();
  let turn: number | undefined;
  let lastTurn = 0;
  let step: string | undefined;
  let lastStep = 0;
  let lastResult = -1;
  const order: string[] = [];
  const key = (data: { turn: number; step: number }) => `${data.turn}/${data.step}`;
  for (const [index, event] of events.entries()) {
    // No more than that: an event may be megabytes, and nearly all are as they should be.
    const where = `line ${index}: ${event.type}`;
    assert.equal(event.seq, index, where);
    switch (event.type) {
      case 'turn/start':
        assert.equal(turn, undefined, where);
        assert.equal(event.data.turn, lastTurn + 1, where);
        turn = lastTurn = event.data.turn;
        lastStep = 0;
        break;
      case 'turn/end':
        assert.equal(event.data.turn, turn, where);
        assert.equal(step, undefined, where);
        for (const [id, call] of calls) assert.ok(call.called && call.answered, `call ${id} is open at the end of its turn`);
        turn = undefined;
        break;
      case 'step/start':
        assert.equal(event.data.turn, turn, where);
        assert.equal(step, undefined, where);
        assert.equal(event.data.step, lastStep + 1, where);
        lastStep = event.data.step;
        step = key(event.data);
        order.length = 0;
        lastResult = -1;
        break;
      case 'step/end':
        assert.equal(key(event.data), step, where);
        step = undefined;
        break;
      case 'user/message':
        assert.equal(event.data.turn, turn, where);
        break;
      case 'assistant/message':
        assert.equal(key(event.data), step, where);
        for (const { callId } of event.data.toolCalls) {
          assert.ok(!calls.has(callId), `call id used twice: ${where}`);
          calls.set(callId, { step: key(event.data), called: false, started: false, answered: false });
          order.push(callId);
        }
        break;
      case 'tool/call': {
        const call = calls.get(event.data.callId);
        assert.ok(call !== undefined && !call.called && call.step === key(event.data) && step === call.step, where);
        call.called = true;
        break;
      }
      case 'tool/start': {
        const call = calls.get(event.data.callId);
        assert.ok(call?.called && !call.started && !call.answered && call.step === key(event.data) && step === call.step, where);
        call.started = true;
        break;
      }
      case 'tool/result': {
        const call = calls.get(event.data.callId);
        assert.ok(call?.called && !call.answered, where);
        assert.ok(call.started || event.data.isError, `a success without a start: ${where}`);
        call.answered = true;
        assert.ok(order.indexOf(event.data.callId) > lastResult, `results out of call order: ${where}`);
        lastResult = order.indexOf(event.data.callId);
        break;
      }
      case 'assistant/chunk':
      case 'command/run':
      case 'history/compacted':
      case 'file/snapshot':
      case 'history/pruned':
      case 'instructions/read':
      case 'history/rewound':
      case 'undo/start':
      case 'workspace/observed':
      case 'llm/retry':
      case 'llm/wait':
      case 'mcp/status':
      case 'mode/change':
      case 'options/change':
      case 'permission/asked':
      case 'permission/decided':
      case 'request/header':
      case 'subagent/activity':
      case 'subagent/end':
      case 'subagent/start':
      case 'thread/attached':
      case 'session/title':
      case 'todo/write':
        break;
    }
  }
  if (options.open !== true) assert.equal(turn, undefined, 'the last turn is open');
}
