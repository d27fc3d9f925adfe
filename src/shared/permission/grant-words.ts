/**
 * What a lasting answer is about, in words: read from its key, which alone decides. For the file in which it is kept, and for
 * the person who lists what they have answered.
 */

import { circumstanceWords } from './command-grant.ts';
import type { LastingAnswer } from './grants-file.ts';

/** For example `while contained: the command "npm test" in /srv/project`. A key of a later release is given back as it is. */
export function grantWords(key: string, answer: LastingAnswer): string {
  const [kind, ...parts] = parsedKey(key);
  switch (kind) {
    case 'execute':
      return `${circumstanceWords(parts.slice(2), answer === 'allow')}the command ${JSON.stringify(parts[1])} in ${String(parts[0])}`;
    case 'read':
      return `reading ${parts.join(', ')}`;
    case 'write':
      return `writing ${parts.join(', ')}`;
    case 'delegate':
      return `delegating to ${String(parts[0])}`;
    case 'mcp':
      return `the tool ${String(parts[1])} of the MCP server ${String(parts[0])}, as it was then`;
    case 'tool':
      return `the tool ${String(parts[0])}`;
    default:
      return key;
  }
}

function parsedKey(key: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(key);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    // Not one of ours.
    return [];
  }
}
