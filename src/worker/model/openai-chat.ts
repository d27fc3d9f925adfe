/**
 * The model adapter for DeepSeek and every other server that speaks OpenAI's streaming chat completions.
 *
 * One per session. Between calls it remembers what it sent last, so that the next call need not write the same conversation again,
 * and only for as long as nobody needs the memory.
 */
import { takesImages } from '../../shared/model-images.ts';
import type { Sampling } from '../../shared/session-options.ts';
import { type ChatBody, type ChatConfig, writeChatBody } from './chat-request.ts';
import { ChatTranslator } from './chat-translator.ts';
import {
  type ModelAdapter,
  type ModelEvent,
  ModelFailure,
  type ModelFinish,
  type ModelRequest,
  type StreamOptions,
} from './model-adapter.ts';
import { type ModelEndpoint, parseEndpoint } from './model-endpoint.ts';
import { defaultSseLimits, type SseLimits } from './sse-decoder.ts';
import { SseExchange } from './sse-exchange.ts';
import { usedCallIds } from './tool-call-joiner.ts';

export class OpenAiChatModel implements ModelAdapter {
  readonly provider: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly takesImages: boolean;
  readonly sampling: Sampling | undefined;
  readonly #config: ChatConfig;
  readonly #endpoint: ModelEndpoint;
  readonly #limits: SseLimits;
  #sent: WeakRef<ChatBody> | undefined;

  /** @throws ServerError CONFIG_INVALID for an address that is not used; see {@link parseEndpoint} */
  constructor(config: ChatConfig, limits: SseLimits = defaultSseLimits) {
    this.provider = config.dialect === 'deepseek' ? 'deepseek' : 'openai-compatible';
    this.model = config.model;
    this.contextWindow = config.contextWindow;
    this.takesImages = takesImages(config);
    this.sampling = config.sampling;
    this.#config = config;
    this.#endpoint = parseEndpoint(config.baseUrl);
    this.#limits = limits;
  }

  async stream(request: ModelRequest, sink: (event: ModelEvent) => void, options: StreamOptions): Promise<ModelFinish> {
    const apiKey = this.#config.apiKey?.trim() || undefined;
    if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
      throw new ModelFailure('AUTH', 'The API key holds characters that a key cannot have. Check the variable it comes from.');
    }
    const translator = new ChatTranslator({ usedCallIds: () => usedCallIds(request.messages), sink, apiKey });
    const body = writeChatBody(this.#config, request, this.#sent?.deref());
    try {
      await SseExchange.run({
        signal: options.signal,
        whenWritable: options.whenWritable,
        endpoint: this.#endpoint,
        body: body.pieces,
        apiKey,
        firstByteTimeoutMs: this.#config.firstByteTimeoutMs,
        idleTimeoutMs: this.#config.idleTimeoutMs,
        limits: this.#limits,
        take: (data) => translator.take(data),
      });
    } finally {
      // Behind the call, which holds the bytes anyway: from here on they may be collected, and are written anew if they were.
      this.#sent = new WeakRef(body);
    }
    return translator.finish();
  }
}
