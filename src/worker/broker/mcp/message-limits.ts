/** What one message of an MCP server may be. A server that sends more is given up. */

/** A reply of this size is far more than a model can read; screenshots and whole files fit. */
export const maxMessageBytes = 16 * 1024 * 1024;
/** Whoever walks a message by recursion stays far from the end of its stack. */
export const maxMessageDepth = 100;

/** Stops at the limit, so that it cannot overflow the stack on what it is there to find. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((member) => isDeeperThan(member, limit - 1));
}
