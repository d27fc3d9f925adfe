/**
 * `env` on the wire: variables for the commands of one session. Their values may be secrets and appear in no message.
 */
import * as z from 'zod/v4';

const mostVariables = 256;
const mostBytes = 64 * 1024;

export const environmentSchema = z.lazy(() =>
  z
    .record(z.string(), z.string({ error: 'expected text' }))
    .refine((env) => Object.keys(env).every(isName), 'expected names of letters, digits and underscores')
    .refine((env) => Object.values(env).every((value) => !value.includes('\0')), 'expected values without NUL characters')
    .refine((env) => Object.keys(env).length <= mostVariables, `expected at most ${mostVariables} variables`)
    .refine((env) => bytesOf(env) <= mostBytes, `expected at most ${mostBytes} bytes of names and values`),
);

function isName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

function bytesOf(env: Readonly<Record<string, string>>): number {
  return Object.entries(env).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
}
