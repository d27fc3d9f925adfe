/** What a command's result says of its sandbox. */
import t from 'tap';
import type { RunResult } from '../../../../src/shared/broker-protocol.ts';
import { commandOutcome } from '../../../../src/worker/tools/bash-result.ts';

const stream = (text: string) => ({ text, totalBytes: text.length, truncated: false });
const facts = { cwd: '/w', timeoutMs: 1, spillMaxBytes: 1 };

function outcome(more: Partial<RunResult>, stderr = '', askedForNetwork = false) {
  const result: RunResult = {
    exitCode: 1,
    signal: null,
    timedOut: false,
    cancelled: false,
    contained: true,
    stdout: stream(''),
    stderr: stream(stderr),
    durationMs: 1,
    ...more,
  };
  return commandOutcome(result, { ...facts, askedForNetwork });
}

t.test('a command that failed for lack of a network says so, to the model and in the card, and what would give it one', async (t) => {
  for (const words of [
    'curl: (6) Could not resolve host: example.org',
    'npm error code EAI_AGAIN',
    "fatal: unable to access 'https://x/': Could not resolve host: x",
    'connect ECONNREFUSED 127.0.0.1:3000',
    'Temporary failure in name resolution',
    'dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp: connection refused',
  ]) {
    const { text, meta } = outcome({ networkOff: 'unasked' }, words);
    t.match(text, /\[no network: .*call again with network set to true/, words);
    t.match(meta, { network: 'off', notes: [/^\[no network: /] });
  }
  t.match(outcome({ networkOff: 'unasked' }, 'ENOTFOUND', true).text, /asked for it, but nobody who decides here may give it/);
  t.match(outcome({ networkOff: 'settings' }, 'ENOTFOUND').text, /sandbox_network = "off"/);
  t.match(outcome({ networkOff: 'rule' }, 'ENOTFOUND').text, /the rule of the policy/);
  t.match(outcome({ networkOff: 'unasked', exitCode: 0 }, 'ENOTFOUND').text, /no network/, 'also where the failure is swallowed');
  t.notMatch(outcome({}, 'ENOTFOUND').text, /no network/, 'one that had a network failed otherwise');
  const plain = outcome({ networkOff: 'unasked' }, '1 test failed');
  t.match(plain.text, /ran in a sandbox.*There is no network\./);
  t.notMatch(plain.meta, { notes: [/./] }, 'which is nothing for the card');
});

t.test('control files that were made are named, with where they are now', async (t) => {
  const { text, meta } = outcome({
    exitCode: 0,
    controlFiles: ['/w/.envrc'],
    movedFiles: [{ path: '/w/.mcp.json', to: '/s/q/.mcp.json' }],
  });
  t.match(text, /appeared or changed that other programs trust: "\/w\/\.envrc"; tell the user/);
  t.match(text, /moved out of the workspace: "\/w\/\.mcp\.json" \(now "\/s\/q\/\.mcp\.json"\)/);
  t.equal((meta?.['notes'] as string[] | undefined)?.length, 2, 'for the person, too');
});
