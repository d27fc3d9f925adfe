/**
 * One answer for each prompt, counted where the server makes it: the client cannot see a second one, since a promise settles once. A
 * settle that comes too late is to say so; one that says it was the first, behind another that did, has answered twice. So has a
 * thread that tells main twice how one turn ended. And one turn at a time: main gives an agent no prompt while it has one. An agent would
 * queue it, so that the client sees little of such a fault.
 */
import { PendingPrompt } from '../../src/main/sessions/pending-prompt.ts';
import { Completions } from '../../src/main/threads/completions.ts';
import { ReactLoopAgent } from '../../src/worker/agent/react-loop-agent.ts';

let complain: (what: string) => void = () => undefined;
let settled = new WeakSet<PendingPrompt>();
let ended = new WeakMap<Completions, Set<number>>();
let isWatching = false;

/** From here on, for the simulation that runs now. */
export function watchSettling(tell: (what: string) => void): void {
  complain = tell;
  settled = new WeakSet();
  ended = new WeakMap();
  if (isWatching) return;
  isWatching = true;
  const prompt = PendingPrompt.prototype;
  replace(
    prompt,
    'settle',
    (settle) =>
      function counted(this: PendingPrompt, result) {
        return once(this, settle.call(this, result));
      },
  );
  replace(
    prompt,
    'fail',
    (fail) =>
      function counted(this: PendingPrompt, error) {
        return once(this, fail.call(this, error));
      },
  );
  replace(
    Completions.prototype,
    'settle',
    (settle) =>
      function counted(this: Completions, completion) {
        const known = ended.get(this) ?? new Set();
        ended.set(this, known);
        if (known.has(completion.requestId)) complain(`the end of the ${completion.kind} ${completion.requestId} was told twice`);
        known.add(completion.requestId);
        settle.call(this, completion);
      },
  );
  replace(
    ReactLoopAgent.prototype,
    'send',
    (send) =>
      function counted(this: ReactLoopAgent, ...said) {
        if (this.status === 'running') complain('a session was given a prompt while one ran');
        return send.apply(this, said);
      },
  );
}

/** One method of a class by another, which is given the one that was. */
export function replace<Owner, Name extends keyof Owner>(owner: Owner, name: Name, make: (was: Owner[Name]) => Owner[Name]): void {
  owner[name] = make(owner[name]);
}

function once(prompt: PendingPrompt, wasFirst: boolean): boolean {
  if (wasFirst && settled.has(prompt)) complain('a prompt was settled twice');
  if (wasFirst) settled.add(prompt);
  return wasFirst;
}
