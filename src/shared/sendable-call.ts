/**
 * A model's tool call as later requests carry it. Used by the model's history and by exports of a log, which must say the same.
 */
import type { ToolCallRequest } from './events.ts';

const longestBrokenArguments = 2000;

/** Servers parse the arguments of earlier calls and refuse the whole request when they are broken JSON. */
export function sendableCall(call: ToolCallRequest): ToolCallRequest {
  if (call.arguments.trim() === '') return { ...call, arguments: '{}' };
  if (isJsonObject(call.arguments)) return call;
  return { ...call, arguments: JSON.stringify({ unreadable_arguments: call.arguments.slice(0, longestBrokenArguments) }) };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false; // Broken JSON is the case this function looks for.
  }
}
