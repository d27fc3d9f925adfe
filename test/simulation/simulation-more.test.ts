/** More seeds, in a file of their own so that they run beside the others. */
import t from 'tap';
import { firstFailure } from './seeds.ts';

t.test('seeds 251 to 500 keep what the protocol and the log promise', async (t) => {
  t.equal(await firstFailure(251, 501), undefined);
});
