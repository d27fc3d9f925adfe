/** A model that is changed while its session runs: when, and what goes with it. */
import t from 'tap';
import { SwitchableModel, type SwitchableSettings } from '../../../../src/worker/model/switchable-model.ts';
import { ModelServer } from '../../../support/model-server.ts';

const prices = { input: 1, output: 2, cacheRead: 0.1 };
const dear = { input: 10, output: 20, cacheRead: 1 };
const settings = (baseUrl: string): SwitchableSettings => ({
  model: {
    kind: 'openai-compatible',
    dialect: 'deepseek',
    baseUrl,
    model: 'flash',
    apiKey: 'k',
    contextWindow: 1000,
    maxOutputTokens: 100,
    thinking: 'high',
    sampling: { seed: 7 },
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 5000,
    maxRetries: 0,
    maxRetryAfterMs: 0,
  },
  models: [{ name: 'pro', prices: dear }, { name: 'unknown' }],
  prices,
});

t.test('a choice holds from the next step on, for the whole step', async (t) => {
  const server = await ModelServer.start();
  t.teardown(() => server.close());
  const model = new SwitchableModel(settings(server.baseUrl));
  const ask = async () => {
    await model.stream({ system: '', tools: [], messages: [{ role: 'user', text: 'hi' }] }, () => undefined, {
      signal: new AbortController().signal,
      whenWritable: () => undefined,
    });
    const { body } = server.requests.at(-1)!;
    return [body.model, body.thinking.type, body.reasoning_effort, body.seed];
  };
  t.same(await ask(), ['flash', 'enabled', 'high', 7]);
  model.choose({ model: 'pro', thoughtLevel: 'off' });
  t.same(await ask(), ['flash', 'enabled', 'high', 7], 'a retry of the running step goes where the step began');
  t.same([model.model, model.prices], ['flash', prices], 'and it is counted there');
  model.takeChoice();
  t.same([model.model, model.prices], ['pro', dear]);
  t.same(await ask(), ['pro', 'disabled', undefined, 7]);
  model.choose({ thoughtLevel: 'max' });
  model.takeChoice();
  t.same(await ask(), ['flash', 'enabled', 'max', 7], 'choices are whole: what is not among them is as configured');
});

t.test('what is not offered changes nothing, and has no price of its own', async (t) => {
  const model = new SwitchableModel(settings('http://127.0.0.1:1/v1'));
  model.choose({ model: 'gone' });
  model.takeChoice();
  t.equal(model.model, 'flash');
  model.choose({ model: 'unknown' });
  model.takeChoice();
  t.same([model.model, model.prices], ['unknown', undefined]);
  t.match(model, { provider: 'deepseek', contextWindow: 1000, takesImages: false, sampling: { seed: 7 } });
});
