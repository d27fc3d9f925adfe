/** Main's picture of what is chosen: the newer word counts, in whichever order two ports bring them. */
import t from 'tap';
import { ChosenState } from '../../../../src/main/sessions/chosen-state.ts';

t.test('an older word that comes late changes nothing', async (t) => {
  const state = new ChosenState('ask', { model: 'flash' });
  t.same(state.current, { mode: 'ask', choices: { model: 'flash' }, revision: -1 });
  t.equal(state.take({ mode: 'plan', choices: {}, revision: 7 }), true, 'the mode is another one');
  t.equal(state.take({ mode: 'ask', choices: { model: 'pro' }, revision: 5 }), false);
  t.same(state.current, { mode: 'plan', choices: {}, revision: 7 });
  t.equal(state.take({ mode: 'plan', choices: { model: 'pro' }, revision: 9 }), false, 'another model is no other mode');
  t.same(state.current.choices, { model: 'pro' });
});
