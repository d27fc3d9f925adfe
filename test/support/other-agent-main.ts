/**
 * A small ACP agent that is not this program: it knows nothing of `_meta["dsh-acp"]`, and has the manners of real ones: it prints notices on
 * stdout, sends updates that no schema knows, and some of them behind its answer. What it does is in the prompt, a word a line:
 *
 * `say TEXT` · `late TEXT` behind the answer · `tool KIND` shows a call · `ask KIND [PATH …]` asks for permission and says what came of it · `hang` never
 * ends unless cancelled · `deaf` not even then · `die` · `bye` behind the answer · `fail CODE` · `cost USD` · `env NAME` · `flood N` lines · `stop REASON`
 */
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const send = (frame: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const update = (sessionId: string, body: object): void => send({ method: 'session/update', params: { sessionId, update: body } });
const text = (sessionId: string, said: string): void =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } });

let sessions = 0;
let requests = 0;
let calls = 0;
const cancels = new Map<string, () => void>();
const asked = new Map<string, (result: any) => void>();

process.stdout.write('starting the other agent v1\n{"not":"a message"}\n');
process.stderr.write('other agent: ready\n');

async function prompt(id: unknown, sessionId: string, lines: readonly string[]): Promise<void> {
  let stopReason = 'end_turn';
  let late = '';
  let bye = false;
  const cancelled = new Promise<void>((resolve) => cancels.set(sessionId, resolve));
  for (const line of lines) {
    const [word = '', ...rest] = line.split(' ');
    const value = rest.join(' ');
    switch (word) {
      case 'say':
        text(sessionId, value);
        break;
      case 'late':
        late = value;
        break;
      case 'tool':
        update(sessionId, { sessionUpdate: 'tool_call', toolCallId: `c${++calls}`, title: value, kind: value, status: 'completed' });
        break;
      case 'ask': {
        const [kind, ...paths] = rest;
        const locations = paths.map((path) => ({ path }));
        const askId = `ask-${++requests}`;
        const options = [
          { optionId: 'no', name: 'No', kind: 'reject_once' },
          { optionId: 'always', name: 'Always', kind: 'allow_always' },
          { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        ];
        send({
          id: askId,
          method: 'session/request_permission',
          params: { sessionId, toolCall: { toolCallId: `c${++calls}`, title: value, kind, locations }, options },
        });
        const result = await new Promise<any>((resolve) => asked.set(askId, resolve));
        text(sessionId, `${kind}:${result?.outcome?.optionId ?? result?.outcome?.outcome} `);
        break;
      }
      case 'hang':
        await cancelled;
        stopReason = 'cancelled';
        break;
      case 'deaf':
        await new Promise(() => undefined);
        break;
      case 'die':
        process.exit(7);
        break;
      case 'bye':
        bye = true;
        break;
      case 'fail':
        send({ id, error: { code: Number(value), message: 'The other agent failed.', data: { details: 'as it was asked to' } } });
        return;
      case 'cost':
        update(sessionId, { sessionUpdate: 'usage_update', used: 1, size: 10, cost: { amount: Number(value), currency: 'USD' } });
        break;
      case 'env':
        text(sessionId, `${process.env[value] === undefined ? 'unset' : 'set'} `);
        break;
      case 'flood':
        for (let i = 0; i < Number(value); i += 1) {
          update(sessionId, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'thinking '.repeat(10) } });
          if (i % 100 === 0) await delay(0);
        }
        break;
      case 'stop':
        stopReason = value;
        break;
      default:
        text(sessionId, `[${line}]`);
    }
  }
  send({ id, result: { stopReason } });
  if (bye) process.stdout.write('', () => process.exit(0));
  if (late !== '') {
    await delay(20);
    text(sessionId, late);
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line);
  switch (method) {
    case 'initialize':
      send({ id, result: { protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: 'other-agent', version: '1' } } });
      break;
    case 'session/new': {
      const sessionId = `s${++sessions}`;
      send({ id, result: { sessionId } });
      update(sessionId, { sessionUpdate: 'from_the_future', anything: 1 });
      break;
    }
    case 'session/prompt':
      void prompt(id, params.sessionId, params.prompt[0].text.split('\n'));
      break;
    case 'session/cancel':
      cancels.get(params.sessionId)?.();
      break;
    case undefined:
      asked.get(id)?.(result);
      break;
    default:
      if (id !== undefined) send({ id, error: { code: -32601, message: 'unknown' } });
  }
});
