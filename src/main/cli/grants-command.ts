/**
 * `dsh-acp grants`: what the person has answered for good, by workspace, and the way to take it back. Running servers notice at
 * their next call of a tool.
 */
import { createHash } from 'node:crypto';
import { readdirSync, realpathSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ServerError } from '../../shared/errors.ts';
import { grantWords } from '../../shared/permission/grant-words.ts';
import { appendGrant, type GrantsFile, grantsDir, grantsPath, type LastingEntry, readGrants } from '../../shared/permission/grants-file.ts';
import { configError } from '../config/config-error.ts';
import { visibleLine } from '../run/view/visible-text.ts';

const idLength = 10;
const longestWords = 200;
const where = 'command line';

interface StoredGrants extends GrantsFile {
  readonly path: string;
}

/**
 * @param words behind `grants`: `list [DIR]` (which is also what no word means), `remove ID`, `clear DIR`
 * @returns what to print
 * @throws ServerError CONFIG_INVALID for other words; INVALID_PARAMS for an id that there is not; INTERNAL when the disk refuses
 */
export async function runGrants(stateDir: string, words: readonly string[]): Promise<string> {
  const [act = 'list', subject, extra] = words;
  if (extra !== undefined) throw configError({ key: extra, expected: 'one directory or id after the word', where });
  switch (act) {
    case 'list':
      return list(subject === undefined ? allOf(stateDir) : [storedAt(stateDir, canonical(subject))]);
    case 'remove':
      if (subject === undefined) throw configError({ key: 'grants remove', expected: 'an id, as dsh-acp grants shows it', where });
      return await remove(stateDir, subject);
    case 'clear':
      if (subject === undefined) throw configError({ key: 'grants clear', expected: 'the directory of a workspace', where });
      return clear(stateDir, canonical(subject));
    default:
      throw configError({ key: act, expected: 'one of list, remove and clear after grants', where });
  }
}

function list(files: readonly StoredGrants[]): string {
  const shown = files.filter(({ entries, fault }) => entries.size > 0 || fault !== undefined);
  if (shown.length === 0) return 'No lasting answers are kept.\n';
  return shown.map(fileText).join('\n');
}

function fileText({ path, workspace, entries, fault }: StoredGrants): string {
  const rows = [...entries.values()].map((entry) => entryText(workspace ?? '', entry));
  const cure = workspace === undefined ? `remove ${path}` : `dsh-acp grants clear ${JSON.stringify(workspace)}`;
  const doubt = fault === undefined ? [] : [`  ! ${fault}: nothing is allowed by this file until it is gone (${cure})`];
  return [visibleLine(workspace ?? path, 4096), ...doubt, ...rows, ''].join('\n');
}

function entryText(workspace: string, { answer, at, key }: LastingEntry): string {
  const day = visibleLine(at, 40).slice(0, 16).replace('T', ' ');
  return `  ${idOf(workspace, key)}  always ${answer.padEnd(6)}  ${day}  ${visibleLine(grantWords(key, answer), longestWords)}`;
}

async function remove(stateDir: string, id: string): Promise<string> {
  const found = allOf(stateDir).flatMap(({ path, workspace, entries }) =>
    [...entries.values()].flatMap(({ key, answer }) =>
      workspace !== undefined && idOf(workspace, key) === id ? [{ path, workspace, key, answer }] : [],
    ),
  );
  const [one] = found;
  if (one === undefined)
    throw new ServerError('INVALID_PARAMS', `There is no lasting answer ${visibleLine(id, 40)}; dsh-acp grants shows all.`);
  const { path, workspace, key, answer } = one;
  const words = grantWords(key, answer);
  try {
    await appendGrant(path, { workspace, answer: 'forget', words, key, at: new Date().toISOString() });
  } catch (error) {
    throw new ServerError('INTERNAL', `The answer could not be taken back: ${reasonOf(error)}.`, { cause: error });
  }
  return `Taken back: ${visibleLine(words, longestWords)}\n`;
}

function clear(stateDir: string, workspace: string): string {
  const { path, entries } = storedAt(stateDir, workspace);
  try {
    rmSync(path, { force: true });
  } catch (error) {
    throw new ServerError('INTERNAL', `The answers could not be removed: ${reasonOf(error)}.`, { cause: error });
  }
  return `Taken back: ${entries.size} lasting ${entries.size === 1 ? 'answer' : 'answers'} about ${visibleLine(workspace, 4096)}\n`;
}

function allOf(stateDir: string): StoredGrants[] {
  const dir = grantsDir(stateDir);
  let names: string[];
  try {
    names = readdirSync(dir);
  } catch {
    // Nobody has answered anything for good yet.
    return [];
  }
  const files = names.filter((name) => name.endsWith('.jsonl')).map((name) => stored(join(dir, name)));
  return files.sort((a, b) => ((a.workspace ?? '') < (b.workspace ?? '') ? -1 : 1));
}

function storedAt(stateDir: string, workspace: string): StoredGrants {
  return stored(grantsPath(stateDir, workspace));
}

function stored(path: string): StoredGrants {
  return { path, ...readGrants(path) };
}

/** The directory may be gone: its name is enough then. */
function canonical(directory: string): string {
  try {
    return realpathSync.native(directory);
  } catch {
    return resolve(directory);
  }
}

function idOf(workspace: string, key: string): string {
  return createHash('sha256').update(`${workspace}\0${key}`).digest('hex').slice(0, idLength);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault';
}
