/**
 * The way into the simulation: one seed, or a plan that was made from one. The surroundings are put in place before the program is
 * imported, so nothing here may import it directly.
 */
import { planOf, type Plan } from './plan.ts';
import type { Outcome } from './simulated-run.ts';
import { installSurroundings } from './surroundings.ts';

export async function runSeed(seed: number, tellsOrigins = false): Promise<Outcome> {
  return await runPlan(planOf(seed), tellsOrigins);
}

/** @param tellsOrigins a timer that is left says who started it, which costs time */
export async function runPlan(plan: Plan, tellsOrigins = false): Promise<Outcome> {
  installSurroundings();
  const { simulate } = await import('./simulated-run.ts');
  return await simulate(plan, tellsOrigins);
}

/** Leaves out sessions, then single acts, as long as something still goes wrong. */
export async function shrink(plan: Plan): Promise<{ plan: Plan; outcome: Outcome }> {
  let best = { plan, outcome: await runPlan(plan, true) };
  const attempt = async (acts: Plan['acts']): Promise<boolean> => {
    if (acts.length === best.plan.acts.length) return false;
    const smaller = { ...plan, acts };
    const outcome = await runPlan(smaller, true);
    if (outcome.complaints.length === 0) return false;
    best = { plan: smaller, outcome };
    return true;
  };
  for (const session of new Set(plan.acts.map((act) => act.session))) {
    if (session >= 0) await attempt(best.plan.acts.filter((act) => act.session !== session));
  }
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (let index = best.plan.acts.length - 1; index >= 0; index -= 1) {
      const acts = best.plan.acts.filter((act, at) => at !== index || act.kind === 'end-of-input');
      if (await attempt(acts)) isSmaller = true;
    }
  }
  return best;
}

/** What a person needs to see of a seed that fails. */
export async function failureText(seed: number): Promise<string> {
  const { plan, outcome } = await shrink(planOf(seed));
  const lines = outcome.history.length > 120 ? [...outcome.history.slice(0, 60), '  …', ...outcome.history.slice(-60)] : outcome.history;
  return [
    `seed ${seed} fails; with ${plan.acts.length} acts it still does:`,
    ...outcome.complaints.map((complaint) => `  ${complaint}`),
    JSON.stringify(plan.settings),
    ...lines,
    `replay: npm run simulate -- --seed ${seed} --trace`,
  ].join('\n');
}
