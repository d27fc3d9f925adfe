/** What can be chosen for a session, by the model that the settings have. */
import t from 'tap';
import type { ModelConfig } from '../../../src/shared/config.ts';
import {
  allowedChoices,
  chosenAfter,
  chosenModel,
  chosenModelName,
  configOptions,
  offeredModels,
} from '../../../src/shared/session-choices.ts';
import { validateAgentFrame } from '../../support/acp-schema.ts';

const remote: Extract<ModelConfig, { kind: 'openai-compatible' }> = {
  kind: 'openai-compatible',
  dialect: 'deepseek',
  baseUrl: 'http://127.0.0.1:1/v1',
  model: 'flash',
  apiKey: undefined,
  contextWindow: 1000,
  maxOutputTokens: 100,
  thinking: 'high',
  firstByteTimeoutMs: 1,
  idleTimeoutMs: 1,
  maxRetries: 0,
  maxRetryAfterMs: 0,
};
const deepseek = { model: remote, models: [{ name: 'pro' }, { name: 'flash' }, { name: 'mini' }] };
const generic = { model: { ...remote, dialect: 'generic' as const }, models: [] };
const scripted = { model: { kind: 'scripted', paceMs: 0 } } as const;
const plain = { mode: 'ask', choices: {} } as const;
const shown = (options: ReturnType<typeof configOptions>) => options.map(({ id, category, currentValue }) => [id, category, currentValue]);

t.test('the list is whole, in one order, and says what holds', async (t) => {
  t.same(shown(configOptions(deepseek, plain, true)), [
    ['mode', 'mode', 'ask'],
    ['model', 'model', 'flash'],
    ['thought_level', 'thought_level', 'high'],
    ['show_thoughts', 'model_config', true],
  ]);
  const chosen = { mode: 'plan', choices: { model: 'pro', thoughtLevel: 'max', showThoughts: false } } as const;
  t.same(shown(configOptions(deepseek, chosen, true)), [
    ['mode', 'mode', 'plan'],
    ['model', 'model', 'pro'],
    ['thought_level', 'thought_level', 'max'],
    ['show_thoughts', 'model_config', false],
  ]);
});

t.test('a switch is for clients that can show one, and a level for models that have them', async (t) => {
  const ids = (settings: Parameters<typeof configOptions>[0], booleans: boolean) =>
    configOptions(settings, plain, booleans).map(({ id }) => id);
  t.same(ids(deepseek, false), ['mode', 'model', 'thought_level']);
  t.same(ids(generic, true), ['mode', 'model', 'show_thoughts']);
  t.same(ids(scripted, false), ['mode', 'model']);
});

t.test('the configured model is among the offered ones, first and once', async (t) => {
  t.same(offeredModels(deepseek), ['flash', 'pro', 'mini']);
  t.same(offeredModels(generic), ['flash']);
  t.same(offeredModels(scripted), ['scripted']);
  t.same(offeredModels({ model: { kind: 'replay', path: '/x' } }), ['replay']);
});

t.test('what the settings do not offer is as if it had not been chosen', async (t) => {
  t.same(allowedChoices(deepseek, { model: 'gone', thoughtLevel: 'low' }), { thoughtLevel: 'low' });
  t.same(allowedChoices(generic, { model: 'flash', thoughtLevel: 'low', showThoughts: true }), { model: 'flash', showThoughts: true });
  t.equal(chosenModelName(deepseek, { model: 'gone' }), 'flash');
  t.same(chosenModel(scripted, { model: 'pro', thoughtLevel: 'max' }), scripted.model);
});

t.test('a choice goes over the settings of the model, and takes along what holds for every model of the server', async (t) => {
  const eyes = { ...deepseek, model: { ...remote, images: 'on' as const } };
  t.match(chosenModel(eyes, { model: 'pro', thoughtLevel: 'off' }), {
    model: 'pro',
    thinking: 'off',
    contextWindow: 1000,
    baseUrl: remote.baseUrl,
  });
  t.notMatch(chosenModel(eyes, { model: 'pro' }), { images: 'on' }, 'but not what was said of the eyes of another one');
  t.match(chosenModel(eyes, { thoughtLevel: 'low' }), { model: 'flash', images: 'on', thinking: 'low' });
});

t.test('the log says what holds: the last word of each kind', async (t) => {
  let chosen: Parameters<typeof chosenAfter>[0] = { ...plain, revision: -1 };
  const event = (seq: number, type: string, data: object) => ({ type, seq, time: 1, data }) as Parameters<typeof chosenAfter>[1];
  for (const one of [
    event(3, 'options/change', { model: 'pro', showThoughts: false }),
    event(4, 'step/end', { turn: 1, step: 1 }),
    event(5, 'mode/change', { mode: 'plan' }),
    event(8, 'options/change', { model: 'mini' }),
  ])
    chosen = chosenAfter(chosen, one);
  t.same(chosen, { mode: 'plan', choices: { model: 'mini', showThoughts: false }, revision: 8 });
});

t.test('the list is what the protocol says', async (t) => {
  for (const settings of [deepseek, generic, scripted]) {
    const result = { configOptions: configOptions(settings, plain, true) };
    t.same(validateAgentFrame({ jsonrpc: '2.0', id: 1, result }, { method: 'session/set_config_option' }), []);
  }
});
