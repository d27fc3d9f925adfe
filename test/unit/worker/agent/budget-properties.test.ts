/**
 * Whatever the budgets, answers, subagents, crashes and cancels: no budget is overrun by more than what one answer or one
 * dispatch brings, a reopened session has the sums of the live one, no mark is told twice, and every turn ends once.
 */
import * as fc from 'fast-check';
import t from 'tap';
import type { TurnUsage } from '../../../../src/shared/events.ts';
import type { Budget } from '../../../../src/shared/session-options.ts';
import type { TurnEnd } from '../../../../src/worker/agent/turn.ts';
import type { AnyTool } from '../../../../src/worker/tools/tool.ts';
import { AgentRig, assertLegal, epoch, fail, prompt, type Reply, type RigOptions, say, tool, usage } from './agent-rig.ts';

const prices = { input: 1.37, output: 9.1, cacheRead: 0.13 };
const mostCalls = 4;
/** What one answer of the scripts below may bring at most: its own tokens, a guess included, or those of its subagents. */
const mostTokens = 12_000;
const mostMs = 3000;

const replies = (reported: fc.Arbitrary<boolean>, failure: fc.Arbitrary<'SERVER' | 'AUTH' | 'RATE_LIMIT' | undefined>) =>
  fc.record({
    calls: fc.array(fc.constantFrom('look', 'spend', 'nope'), { maxLength: mostCalls }),
    input: fc.nat(3000),
    output: fc.nat(1000),
    reported,
    ms: fc.nat(mostMs),
    failure,
  });
const anyReply = replies(fc.boolean(), fc.option(fc.constantFrom('SERVER', 'AUTH', 'RATE_LIMIT'), { freq: 8, nil: undefined }));
/** A guess goes by what the provider said before, and that is not in the log. */
const countedReply = replies(fc.constant(true), fc.constant(undefined));
type Answer = typeof anyReply extends fc.Arbitrary<infer T> ? T : never;

const limited = (limit: fc.Arbitrary<number>) => fc.option(limit, { nil: undefined });
const budget: fc.Arbitrary<Budget> = fc
  .record({
    maxSteps: limited(fc.integer({ min: 1, max: 12 })),
    maxToolCalls: limited(fc.integer({ min: 1, max: 20 })),
    maxTokens: limited(fc.integer({ min: 1, max: 40_000 })),
    maxCostUsd: limited(fc.double({ min: 0.0001, max: 0.2, noNaN: true })),
    maxWallMs: limited(fc.integer({ min: 1, max: 30_000 })),
    deadline: limited(fc.integer({ min: epoch + 1, max: epoch + 60_000 })),
  })
  .map((limits) => Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)));

const turns = (answer: fc.Arbitrary<Answer>) =>
  fc.record({ budget, answers: fc.array(answer, { maxLength: 8 }), between: fc.option(fc.nat(2000), { nil: undefined }) });

function replyOf({ calls, input, output, reported, ms, failure }: Answer, place: number): Reply {
  return async (asked) => {
    asked.rig.time += ms;
    if (failure !== undefined) return fail(failure, 'part of it')(asked);
    const toolCalls = calls.map((name, index) => ({ callId: `${place}.${index}`, name, arguments: '{}' }));
    const counted = reported ? { usage: { ...usage(input, output), cacheReadTokens: input } } : {};
    return say('this is it', { reason: toolCalls.length > 0 ? 'tool-calls' : 'stop', toolCalls, ...counted })(asked);
  };
}

const childUsage = (inputTokens: number) => ({ inputTokens, outputTokens: 10, cacheReadTokens: 0, reasoningTokens: 0 });

const look = tool('look', async () => ({ text: 'seen', isError: false }), true);

/** For a turn that goes on longer than its script. */
const spares = Array.from({ length: 20 }, () => say('no more', { usage: usage(50, 5) }));

interface Scenario {
  readonly session: Budget;
  readonly turns: readonly { readonly budget: Budget; readonly answers: readonly Answer[]; readonly between: number | undefined }[];
}
const scenarios = (answer: fc.Arbitrary<Answer>): fc.Arbitrary<Scenario> =>
  fc.record({ session: budget, turns: fc.array(turns(answer), { minLength: 1, maxLength: 4 }) });

function optionsOf(session: Budget, tools: AnyTool[]): RigOptions {
  return {
    tools,
    settings: { prices },
    options: { budget: session },
    nextDelay: (attempt) => (attempt < 3 ? 10 : undefined),
    instant: (ms) => ms === 10,
  };
}

/** Sends one prompt after the other; with `reopen` each to an agent that was made from the log. */
async function run({ session, turns }: Scenario, reopen: boolean): Promise<{ rig: AgentRig; ends: TurnEnd[] }> {
  const spend = tool('spend', async (_args, { callId }) => {
    rig.subagentEnded(callId, childUsage(500));
    return { text: 'delegated', isError: false };
  });
  let rig = new AgentRig([], optionsOf(session, [look, spend]));
  const ends: TurnEnd[] = [];
  for (const [index, { budget: limits, answers, between }] of turns.entries()) {
    if (reopen && index > 0) rig = rig.reopened();
    rig.script.splice(0, rig.script.length, ...answers.map((each, at) => replyOf(each, index * 100 + at)), ...spares);
    ends.push(await rig.agent.send(prompt('go'), { budget: limits }));
    assertLegal(rig);
    if (between === undefined) continue;
    // As a background run does that ends while nothing else happens.
    rig.subagentEnded('late', childUsage(between));
  }
  return { rig, ends };
}

function tokensOf({ inputTokens, outputTokens, cacheReadTokens, guessedTokens = 0, subagents }: TurnUsage): number {
  const children = subagents === undefined ? 0 : subagents.inputTokens + subagents.outputTokens + subagents.cacheReadTokens;
  return inputTokens + outputTokens + cacheReadTokens + guessedTokens + children;
}

function assertWithin(limits: Budget, usages: readonly TurnUsage[], what: string): void {
  const sum = (of: (usage: TurnUsage) => number) => usages.reduce((total, each) => total + of(each), 0);
  const most = (used: number, limit: number | undefined, over: number) => {
    if (limit !== undefined && used >= limit + over) throw new Error(`${what}: ${used} of ${limit}`);
  };
  most(
    sum((each) => each.steps),
    limits.maxSteps,
    0.5,
  );
  most(
    sum((each) => each.toolCalls),
    limits.maxToolCalls,
    0.5,
  );
  most(sum(tokensOf), limits.maxTokens, mostTokens);
  most(
    sum((each) => each.costUsd ?? 0),
    limits.maxCostUsd,
    mostTokens * 9.1e-6,
  );
  most(
    sum((each) => each.elapsedMs),
    limits.maxWallMs,
    mostMs + 1,
  );
}

t.test('200 sessions: no budget is overrun by more than one answer, and each mark is told once', async (t) => {
  const budgets = new Set<string>();
  const property = fc.asyncProperty(scenarios(anyReply), async (each) => {
    const { rig, ends } = await run(each, false);
    if (rig.of('turn/end').length !== each.turns.length) throw new Error('a turn has no end, or two');
    for (const [index, end] of ends.entries()) {
      if (end.reason.kind === 'max-turn-requests') budgets.add(`${end.reason.budget} ${end.reason.scope ?? 'turn'}`);
      // What waited from before the turn cannot be helped by its budget.
      const late = (each.turns[index - 1]?.between ?? 0) + 10;
      assertWithin(each.turns[index]?.budget ?? {}, [{ ...end.usage, inputTokens: end.usage.inputTokens - late }], `turn ${index}`);
    }
    const waiting = each.turns.reduce((sum, { between }) => sum + (between ?? 0) + 10, 0);
    const usages = ends.map(({ usage: used }) => used);
    assertWithin(
      { ...each.session, ...(each.session.maxTokens === undefined ? {} : { maxTokens: each.session.maxTokens + waiting }) },
      usages,
      'session',
    );
    for (let number = 1; number <= ends.length; number += 1) {
      const told = rig.of('user/message').filter((message) => message.turn === number && message.source === 'notice');
      const texts = told.flatMap(({ content }) => content.map((block) => ('text' in block ? block.text : '')));
      for (const mark of [/may use at most/, /^\[Half/, /^\[Four fifths/, /Finish now/]) {
        if (texts.filter((text) => mark.test(text)).length > 1) throw new Error(`told twice: ${mark.source}`);
      }
    }
    if (rig.sleepers.size > 0) throw new Error('a timer is left');
  });
  await fc.assert(property, { numRuns: 200 });
  t.ok(budgets.size >= 10, [...budgets].join(', '));
});

t.test('100 sessions: one that is reopened for every turn goes the same way as one that lives on', async (t) => {
  let spent = 0;
  const property = fc.asyncProperty(scenarios(countedReply), async (each) => {
    const live = await run(each, false);
    const reopened = await run(each, true);
    // A time limit cuts an answer, whose tokens are then guessed: from there on the two may count apart.
    const cut = live.ends.findIndex(({ usage: used }) => used.guessedTokens !== undefined);
    const shown = (ends: readonly TurnEnd[]) =>
      JSON.stringify(ends.slice(0, cut === -1 ? undefined : cut).map(({ reason, usage: used, left }) => ({ reason, used, left })));
    if (shown(live.ends) !== shown(reopened.ends)) throw new Error(`${shown(live.ends)}\n${shown(reopened.ends)}`);
    if (live.ends.some(({ reason }) => reason.kind === 'max-turn-requests' && reason.scope === 'session')) spent += 1;
  });
  await fc.assert(property, { numRuns: 100 });
  t.ok(spent > 5, `${spent} sessions were spent`);
});

t.test('the sums of a log are those of the turns in it, to the last digit', async (t) => {
  const property = fc.asyncProperty(scenarios(anyReply), async (each) => {
    const limits = { maxSteps: 1e6, maxToolCalls: 1e6, maxTokens: 1e9, maxCostUsd: 1000, maxWallMs: 1e9 };
    const { rig, ends } = await run({ ...each, session: limits }, false);
    const [end] = [await rig.reopened([say('last', { usage: usage(0, 0) })]).agent.send(prompt('sum'))];
    const all = [...ends, end].map(({ usage: used }) => used);
    const left = end.left ?? {};
    const sum = (of: (usage: TurnUsage) => number) => all.reduce((total, used) => total + of(used), 0);
    if (left.maxSteps !== 1e6 - sum((used) => used.steps)) throw new Error('steps');
    if (left.maxToolCalls !== 1e6 - sum((used) => used.toolCalls)) throw new Error('tool calls');
    if (left.maxTokens !== 1e9 - sum(tokensOf)) throw new Error('tokens');
    if (left.maxWallMs !== 1e9 - sum((used) => used.elapsedMs)) throw new Error('time');
    if (Math.abs((left.maxCostUsd ?? 0) - (1000 - sum((used) => used.costUsd ?? 0))) > 1e-9) throw new Error('cost');
  });
  await t.resolves(fc.assert(property, { numRuns: 50 }));
});
