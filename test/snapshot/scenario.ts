/**
 * The files of one scenario, read and checked. A word that is not known is an error: a misspelt assertion would assert nothing.
 *
 * - `steps.json`: what the client does, see {@link Steps}.
 * - `model.json`: the recorded model stream, in the format of the `replay` provider.
 * - `workspace/`: the files before; left out when there are none.
 * - `assert.json`: what the run means, see {@link Meaning}. It is checked on every run, and before a snapshot is written.
 * - `expected/frames.jsonl`: every frame of stdout, made by the runner with `--update`.
 * - `expected/request.json`: where `steps.json` says `pinRequest`: system text and tools of the requests to the model.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../support/server-process.ts';

const scenariosDir = join(projectRoot, 'test', 'snapshot', 'scenarios');

/** `session` is the name of a session in the scenario, `s1` when left out. */
export interface Step {
  readonly op: keyof typeof fieldsOfOp;
  readonly session?: string;
  /** A directory of the workspace. */
  readonly cwd?: string;
  readonly text?: string;
  /** Content blocks instead of `text`. */
  readonly prompt?: readonly object[];
  /** A part of an update to wait for. */
  readonly update?: object;
  /** A file of the workspace to wait for. */
  readonly file?: string;
  readonly mode?: string;
}

/** What each operation takes beside `session`. */
const fieldsOfOp = {
  initialize: [],
  newSession: ['cwd'],
  prompt: ['text', 'prompt'],
  /** Sends a prompt and goes on; `awaitPrompt` waits for the session's last one. */
  startPrompt: ['text', 'prompt'],
  awaitPrompt: [],
  /** Cancels as soon as the update, or the file, is there; waits for the end of the turn. */
  promptAndCancelWhen: ['text', 'prompt', 'update', 'file'],
  waitForUpdate: ['update'],
  waitForFile: ['file'],
  waitForPermission: [],
  cancel: [],
  setMode: ['mode'],
  load: ['cwd'],
  close: [],
  list: [],
  /** Leaves as a client does, and starts a server on the same state. */
  restartServer: [],
} as const satisfies Record<string, readonly string[]>;

/** `title` is a regular expression; the first rule that fits answers. `none` leaves the question open. */
export interface PermissionRule {
  readonly title: string;
  readonly choose: 'allow_once' | 'allow_always' | 'reject_once' | 'cancelled' | 'none';
}

export interface Steps {
  /** What the scenario shows, for people. */
  readonly about: string;
  /** Flags of the server beside the model. */
  readonly args?: readonly string[];
  readonly clientCapabilities?: object;
  readonly permissions?: readonly PermissionRule[];
  readonly pinRequest?: boolean;
  readonly steps: readonly Step[];
}

/** The end of a prompt: its stop reason, or its error. `message` is a regular expression. */
export type PromptEnd = string | { readonly code: number; readonly message: string };

/** A card as it stood at the end. `content` names the kinds of its blocks, in order. */
export interface CardMeaning {
  readonly title: string;
  readonly kind: string;
  readonly status: string;
  readonly content?: readonly string[];
}

export interface Meaning {
  /** How the prompts ended, in the order in which they were sent. */
  readonly ends: readonly PromptEnd[];
  /** Regular expressions that the answer text of a session matches. */
  readonly says?: Readonly<Record<string, readonly string[]>>;
  readonly thinks?: Readonly<Record<string, readonly string[]>>;
  /** All cards of each session, in the order in which they were announced. A session that is not named has none. */
  readonly cards?: Readonly<Record<string, readonly CardMeaning[]>>;
  /** The codes of a session's tool results in the log, `ok` for those that succeeded. What is not named must all be `ok`. */
  readonly results?: Readonly<Record<string, readonly string[]>>;
  /** Every question that was asked, in order: title and what was chosen. */
  readonly permissions?: readonly (readonly [title: string, chosen: string])[];
  /** The last plan of each session, as `status content`. */
  readonly plan?: Readonly<Record<string, readonly string[]>>;
  /** Files that differ from the seed: the new content, or `null` for one that is gone. Every other file is as it was. */
  readonly files?: Readonly<Record<string, string | null>>;
  /** Model calls that were made by each session, retries included; the length of the recording when left out. */
  readonly modelCalls?: Readonly<Record<string, number>>;
}

export interface Scenario {
  readonly name: string;
  readonly dir: string;
  readonly modelPath: string;
  readonly recordedCalls: number;
  readonly steps: Steps;
  readonly meaning: Meaning;
  /** Path of the seed; undefined for an empty workspace. */
  readonly workspace: string | undefined;
  readonly framesPath: string;
  readonly requestPath: string;
}

const stepsKeys = ['about', 'args', 'clientCapabilities', 'permissions', 'pinRequest', 'steps'];
const meaningKeys = ['ends', 'says', 'thinks', 'cards', 'results', 'permissions', 'plan', 'files', 'modelCalls'];
const folderNames = new Set(['steps.json', 'model.json', 'assert.json', 'workspace', 'expected']);

export function scenarioNames(): string[] {
  return readdirSync(scenariosDir).sort();
}

/** @throws Error that names the file and the word */
export function readScenario(name: string): Scenario {
  const dir = join(scenariosDir, name);
  const stray = readdirSync(dir).find((entry) => !folderNames.has(entry));
  if (stray !== undefined) throw new Error(`${name}/${stray} is not a part of a scenario`);
  const steps = readJson(dir, 'steps.json', stepsKeys) as unknown as Steps;
  for (const [index, step] of steps.steps.entries()) checkStep(step, `${name}/steps.json steps[${index}]`);
  for (const rule of steps.permissions ?? []) checkKeys(rule, ['title', 'choose'], `${name}/steps.json permissions`);
  const meaning = readJson(dir, 'assert.json', meaningKeys) as unknown as Meaning;
  if (meaning.ends === undefined) throw new Error(`${name}/assert.json does not say how the prompts end`);
  for (const card of Object.values(meaning.cards ?? {}).flat())
    checkKeys(card, ['title', 'kind', 'status', 'content'], `${name}/assert.json`);
  const modelPath = join(dir, 'model.json');
  const workspace = join(dir, 'workspace');
  return {
    name,
    dir,
    modelPath,
    recordedCalls: JSON.parse(readFileSync(modelPath, 'utf8')).turns.length,
    steps,
    meaning,
    workspace: existsSync(workspace) ? workspace : undefined,
    framesPath: join(dir, 'expected', 'frames.jsonl'),
    requestPath: join(dir, 'expected', 'request.json'),
  };
}

function readJson(dir: string, file: string, known: readonly string[]): Record<string, unknown> {
  const value = JSON.parse(readFileSync(join(dir, file), 'utf8'));
  checkKeys(value, known, join(dir, file));
  return value;
}

function checkStep(step: Step, where: string): void {
  if (!Object.hasOwn(fieldsOfOp, step.op)) throw new Error(`${where}: there is no operation ${step.op}`);
  checkKeys(step, ['op', 'session', ...fieldsOfOp[step.op]], where);
}

function checkKeys(value: object, known: readonly string[], where: string): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new Error(`${where}: "${unknown}" is not known; known are ${known.join(', ')}`);
}
