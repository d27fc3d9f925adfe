/**
 * Every attribute name that our spans carry, and nothing else: the GenAI conventions of OpenTelemetry are still moving, so a
 * renamed attribute is changed here alone. Names of our own begin with `dsh_acp.`.
 */

export const attributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  conversation: 'gen_ai.conversation.id',
  agentName: 'gen_ai.agent.name',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCall: 'gen_ai.tool.call.id',
  /** Cache reads included, as the conventions have it. */
  inputTokens: 'gen_ai.usage.input_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  errorType: 'error.type',
  serviceName: 'service.name',
  serviceVersion: 'service.version',
  serviceInstance: 'service.instance.id',
  turn: 'dsh_acp.turn',
  step: 'dsh_acp.step',
  steps: 'dsh_acp.steps',
  toolCalls: 'dsh_acp.tool_calls',
  stopReason: 'dsh_acp.stop_reason',
  costUsd: 'dsh_acp.cost_usd',
  firstTokenMs: 'dsh_acp.first_token_ms',
  attempt: 'dsh_acp.attempt',
  slotWaitMs: 'dsh_acp.slot_wait_ms',
  toolWaitMs: 'dsh_acp.tool_wait_ms',
  droppedSpans: 'dsh_acp.dropped_spans',
} as const;
