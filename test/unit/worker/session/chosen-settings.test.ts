/** The one place where a session is changed: log first, then the effect, then whoever did not ask for it. */
import t from 'tap';
import type { EventInput, LogEvent, PermissionMode } from '../../../../src/shared/events.ts';
import type { Chosen, SessionChoices } from '../../../../src/shared/session-choices.ts';
import { modeCommand } from '../../../../src/worker/commands/mode-command.ts';
import { modelCommand } from '../../../../src/worker/commands/model-command.ts';
import { planCommand } from '../../../../src/worker/commands/plan-command.ts';
import { ChosenSettings } from '../../../../src/worker/session/chosen-settings.ts';

class Rig {
  readonly events: LogEvent[] = [];
  readonly reports: Chosen[] = [];
  readonly taken: SessionChoices[] = [];
  readonly permissions = {
    mode: 'ask' as PermissionMode,
    setMode: (mode: PermissionMode): void => void (this.permissions.mode = mode),
  };
  full = false;
  readonly chosen: ChosenSettings;

  constructor() {
    this.chosen = new ChosenSettings({
      settings: {
        model: { kind: 'openai-compatible', dialect: 'deepseek', model: 'flash', thinking: 'high' } as never,
        models: [{ name: 'pro' }],
      },
      journal: { append: (event: EventInput) => this.#append(event) },
      permissions: this.permissions,
      model: { choose: (choices) => void this.taken.push(choices) },
      report: (chosen) => void this.reports.push(chosen),
    });
  }

  #append(event: EventInput): LogEvent {
    if (this.full) throw new Error('the disk is full');
    const logged = { ...event, seq: this.events.length + 10, time: 0 };
    this.events.push(logged);
    return logged;
  }
}

t.test('a change is logged once and has its effect; what holds already is none', async (t) => {
  const { chosen, events, taken, reports } = new Rig();
  chosen.setMode('plan');
  chosen.setMode('plan');
  chosen.setChoices({ model: 'pro' });
  chosen.setChoices({ model: 'pro', thoughtLevel: 'low' });
  chosen.setChoices({ model: 'gone' });
  t.match(events, [
    { type: 'mode/change', data: { mode: 'plan' } },
    { type: 'options/change', data: { model: 'pro' } },
    { type: 'options/change', data: { thoughtLevel: 'low' } },
  ]);
  t.same(taken, [{ model: 'pro' }, { model: 'pro', thoughtLevel: 'low' }]);
  t.same(chosen.current, { mode: 'plan', choices: { model: 'pro', thoughtLevel: 'low' }, revision: 12 });
  t.same(reports, [], 'who asked knows');
});

t.test('what the session chooses by itself main is told of', async (t) => {
  const { chosen, reports } = new Rig();
  chosen.control.setMode('ask');
  chosen.control.setMode('accept-edits');
  chosen.control.setChoices({ model: 'pro' });
  t.match(reports, [
    { mode: 'accept-edits', revision: 10 },
    { mode: 'accept-edits', choices: { model: 'pro' }, revision: 11 },
  ]);
  t.equal(chosen.control.current.revision, 11);
});

t.test('a change that cannot be logged is not made', async (t) => {
  const rig = new Rig();
  rig.full = true;
  t.throws(() => rig.chosen.setMode('full-access'));
  t.throws(() => rig.chosen.setChoices({ model: 'pro' }));
  t.same([rig.permissions.mode, rig.taken, rig.chosen.current], ['ask', [], { mode: 'ask', choices: {}, revision: -1 }]);
});

t.test('a session begins with what it was made with, on record even where the settings say the same', async (t) => {
  const { chosen, events } = new Rig();
  chosen.begin('ask', { model: 'pro' });
  t.match(events, [
    { type: 'mode/change', data: { mode: 'ask' } },
    { type: 'options/change', data: { model: 'pro' } },
  ]);
  const other = new Rig();
  other.chosen.begin(undefined, {});
  t.same(other.events, []);
});

t.test('the stored log brings every choice back', async (t) => {
  const { chosen, taken, events } = new Rig();
  const stored = (seq: number, type: string, data: object) => chosen.observe({ type, seq, time: 0, data } as LogEvent);
  stored(3, 'options/change', { model: 'pro' });
  stored(4, 'options/change', { model: 'gone' });
  stored(6, 'options/change', { thoughtLevel: 'max' });
  stored(9, 'step/end', { turn: 1, step: 1 });
  t.same(chosen.current, { mode: 'ask', choices: { thoughtLevel: 'max' }, revision: 6 }, 'a model that is not offered any more is none');
  t.same(taken.at(-1), { thoughtLevel: 'max' });
  t.same(events, []);
});

t.test('slash commands show what there is and set what is named', async (t) => {
  const rig = new Rig();
  const { control } = rig.chosen;
  const [mode, model, plan] = [modeCommand(control), modelCommand(control), planCommand(control)];
  const { signal } = new AbortController();
  t.match(await mode.run('', signal), { kind: 'text', text: /^Mode: \*\*ask\*\*[^]*- `plan`: Reads/ });
  t.match(await mode.run('accept-edits', signal), { kind: 'text', text: /\*\*accept-edits\*\*/ });
  t.equal(rig.permissions.mode, 'accept-edits');
  await t.rejects(mode.run('toString', signal), { code: 'INVALID_PARAMS', message: /ask, accept-edits/ });
  t.match(await model.run('', signal), { kind: 'text', text: 'Model: **flash**\n\n- `flash`\n- `pro`' });
  await model.run('pro', signal);
  t.match(await model.run('', signal), { text: /^Model: \*\*pro\*\*/ });
  await t.rejects(model.run('gone', signal), { code: 'INVALID_PARAMS', message: /flash, pro/ });
  t.match(await plan.run('', signal), { kind: 'text' });
  t.equal(rig.permissions.mode, 'plan');
  rig.permissions.mode = 'ask';
  t.same(await plan.run('fix it', signal), { kind: 'prompt', content: [{ type: 'text', text: 'fix it' }] });
  t.equal(rig.permissions.mode, 'plan');
});
