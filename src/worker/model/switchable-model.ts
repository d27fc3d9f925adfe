/**
 * A model that can be changed while its session runs: which of the server's models answers, and how much it thinks.
 *
 * A choice waits until a step begins, so that all calls of one step go to one model, retries too, and what the log says of
 * the step's request is what was sent.
 */
import type { SessionSettings } from '../../shared/config.ts';
import { chosenModel, type SessionChoices } from '../../shared/session-choices.ts';
import type { Prices, Sampling } from '../../shared/session-options.ts';
import type { ModelAdapter, ModelEvent, ModelFinish, ModelRequest, StreamOptions } from './model-adapter.ts';
import { OpenAiChatModel } from './openai-chat.ts';
import type { ChatConfig } from './chat-request.ts';

export type SwitchableSettings = Pick<SessionSettings, 'models' | 'prices'> & { readonly model: ChatConfig };

export class SwitchableModel implements ModelAdapter {
  readonly #settings: SwitchableSettings;
  #config: ChatConfig;
  #adapter: OpenAiChatModel;
  /** What the next step takes up. */
  #next: SessionChoices | undefined;

  /** @throws ServerError CONFIG_INVALID for a base URL that cannot be used */
  constructor(settings: SwitchableSettings) {
    this.#settings = settings;
    this.#config = settings.model;
    this.#adapter = new OpenAiChatModel(settings.model);
  }

  get provider(): string {
    return this.#adapter.provider;
  }

  get model(): string {
    return this.#adapter.model;
  }

  get contextWindow(): number {
    return this.#adapter.contextWindow;
  }

  get takesImages(): boolean {
    return this.#adapter.takesImages;
  }

  get sampling(): Sampling | undefined {
    return this.#adapter.sampling;
  }

  get prices(): Prices | undefined {
    const { model, models = [], prices } = this.#settings;
    return this.model === model.model ? prices : models.find(({ name }) => name === this.model)?.prices;
  }

  /** All choices of the session, from the next step on; what the settings do not offer is as if it were not chosen. */
  choose(choices: SessionChoices): void {
    this.#next = choices;
  }

  takeChoice(): void {
    if (this.#next === undefined) return;
    const config = chosenModel(this.#settings, this.#next);
    this.#next = undefined;
    if (config.kind !== 'openai-compatible') return;
    if (config.model === this.#config.model && config.thinking === this.#config.thinking) return;
    this.#config = config;
    this.#adapter = new OpenAiChatModel(config);
  }

  stream(request: ModelRequest, sink: (event: ModelEvent) => void, options: StreamOptions): Promise<ModelFinish> {
    return this.#adapter.stream(request, sink, options);
  }
}
