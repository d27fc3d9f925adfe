/** Every kept input and a few made ones, the same each time. Longer runs: `npm run fuzz`. */
import t from 'tap';
import { allTargets } from './all-targets.ts';
import { runCampaign } from './campaign.ts';

const seed = 20_261_130;
const seconds = 0.7;

for (const target of allTargets) {
  t.test(`${target.name}: no kept input and no made one is taken wrongly`, async (t) => {
    const result = await runCampaign(target, { seed, seconds, maxRuns: 400, keep: false });
    t.comment(`seed ${seed}: ${result.kept} kept and ${result.runs} made inputs in ${result.seconds.toFixed(1)} s`);
    t.equal(result.failure?.reason, undefined, result.failure?.input.toString('base64').slice(0, 4000) ?? 'each is taken as it should');
    t.ok(result.kept > 0 && result.runs > 0, 'there was something to try');
  });
}
