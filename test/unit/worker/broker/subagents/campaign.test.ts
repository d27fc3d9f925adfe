/** Twenty runs at random moments: the short form of `npm run campaign:subagents`. */
import { readdirSync } from 'node:fs';
import t from 'tap';
import { SubagentCampaign } from '../../../../support/subagent-campaign.ts';
import { testSeed } from '../../../../support/test-seed.ts';

t.setTimeout(60_000);

t.test('runs that are started and put away at random moments leave no process and no open file', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  const campaign = new SubagentCampaign(t.testdir(), testSeed);
  // The library is loaded after these.
  await campaign.round(2, 2);
  const files = readdirSync('/proc/self/fd').length;
  await campaign.round(18, 6);
  t.same(campaign.left(), []);
  t.equal(campaign.groups.size, 0);
  t.ok(campaign.spawned > 5, `${campaign.spawned} processes were started`);
  // Pipes that have ended are closed at the end of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  const filesLeft = readdirSync('/proc/self/fd').length;
  t.ok(filesLeft <= files, `${filesLeft} open files, ${files} before`);
  t.equal(campaign.complaint(), undefined);
});
