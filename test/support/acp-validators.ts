/**
 * The checks that the schema of ACP compiles to, kept below `build/`. Compiling them takes a second of a core, and what one test file needs of
 * them was half of all that its process did.
 */
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ValidateFunction } from 'ajv';

const build = fileURLToPath(new URL('../../', import.meta.url));
const madeOf = ['./acp-validators-code.js', '../../../node_modules/@agentclientprotocol/sdk/schema/v1/schema.json'];

/** Another schema, or another way to compile it, gives a file of another name. */
const name = `acp-validators-${madeOf.map((path) => Math.trunc(statSync(new URL(path, import.meta.url)).mtimeMs)).join('-')}.cjs`;

async function make(path: string): Promise<void> {
  const { validatorsCode } = await import('./acp-validators-code.ts');
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, validatorsCode());
  // Whole under its name, whatever other tests that begin at this moment do.
  renameSync(draft, path);
  for (const old of readdirSync(build))
    if (/^acp-validators-[\d-]+\.cjs$/.test(old) && old !== name) rmSync(join(build, old), { force: true });
}

const path = join(build, name);
if (!existsSync(path)) await make(path);
const compiled = createRequire(import.meta.url)(path) as Readonly<Record<string, ValidateFunction>>;

/** Whether an agent or a client handles a message, by method and shape: `session/prompt Request`. */
export const acpSides = compiled['sides'] as unknown as Readonly<Record<string, string>>;

/** What checks this message of an agent. */
export function acpValidator(message: string): ValidateFunction {
  const validator = compiled[message];
  if (validator === undefined) throw new Error(`expected a message that an agent sends, came ${message}`);
  return validator;
}
