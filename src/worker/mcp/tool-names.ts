/**
 * The names under which a model knows the tools of MCP servers: `mcp__<server>__<tool>`, of the characters and the length
 * that providers take. Pure, and the same each time: a policy and a cache go by them.
 */
import { createHash } from 'node:crypto';

export const mcpPrefix = 'mcp__';
const longestName = 64;
const longestServer = 24;

/**
 * The servers' parts, in their order. No part holds `__` or ends with `_`, so that no server's tool can take a name that
 * begins as another server's do.
 */
export function serverParts(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const clean = name
      .replaceAll(/[^A-Za-z0-9-]+/g, '_')
      .slice(0, longestServer)
      .replaceAll(/^_+|_+$/g, '');
    const base = clean === '' ? 'server' : clean;
    let part = base;
    for (let count = 2; taken.has(part); count += 1) part = `${base}-${count}`;
    taken.add(part);
    return part;
  });
}

/**
 * The name of one tool; `undefined` when nothing is left of it, or when another tool has the name already. A tool whose
 * name had to be changed carries a print of it.
 */
export function toolName(server: string, tool: string, taken: { has(name: string): boolean }): string | undefined {
  const clean = tool.replaceAll(/[^A-Za-z0-9_-]+/g, '_');
  if (/^_*$/.test(clean)) return undefined;
  const start = `${mcpPrefix}${server}__`;
  const plain = `${start}${clean}`;
  if (clean === tool && plain.length <= longestName && !taken.has(plain)) return plain;
  const print = createHash('sha256').update(tool).digest('hex').slice(0, 6);
  const marked = `${start}${clean.slice(0, longestName - start.length - print.length - 1)}-${print}`;
  return taken.has(marked) ? undefined : marked;
}
