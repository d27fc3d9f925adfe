/**
 * Secrets that are given to every server under a fault test, and the search for them wherever a secret must not be.
 *
 * They differ with every process of tests, and begin alike: one search finds any of them, and also one that was cut.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const beginning = `cnry-${randomBytes(8).toString('hex')}`;
const sameBytes = Buffer.from(beginning);

/** By the name of the variable that holds it. */
export const canaries = {
  FAULT_API_KEY: `${beginning}-key-${randomBytes(6).toString('hex')}`,
  FAULT_SERVICE_TOKEN: `${beginning}-token-${randomBytes(6).toString('hex')}`,
  FAULT_DB_PASSWORD: `${beginning}-pass-${randomBytes(6).toString('hex')}`,
} as const;

/** What a server gets: the secrets, and that one of them is the key of its model. */
export const canaryEnvironment: Readonly<Record<string, string>> = { ...canaries, DSH_ACP_API_KEY_ENV: 'FAULT_API_KEY' };

export function holdsCanary(text: string | Buffer): boolean {
  return typeof text === 'string' ? text.includes(beginning) : text.includes(sameBytes);
}

/** Watches bytes as they come; a secret may lie in two pieces. */
export class CanaryWatch {
  found = false;
  #end = Buffer.alloc(0);

  take(piece: Buffer): void {
    if (this.found) return;
    this.found = holdsCanary(piece) || holdsCanary(Buffer.concat([this.#end, piece.subarray(0, sameBytes.length)]));
    this.#end = Buffer.from(piece.subarray(-sameBytes.length));
  }
}

/** Files below a directory that hold one. */
export function filesWithCanary(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => fileHoldsCanary(path));
}

/** Only files that tests themselves fill are larger. */
const largest = 16 * 1024 * 1024;

function fileHoldsCanary(path: string): boolean {
  try {
    return statSync(path).size <= largest && holdsCanary(readFileSync(path));
  } catch {
    return false; // Ended, closed to us, or gone meanwhile.
  }
}
