/**
 * What a turn of the load has its model do, as a plan for the model server, and the proof afterwards that it was done. Each session
 * has a workspace of its own, so that a turn that was lost or ran twice shows in its files.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AnswerPlan, PlannedToolCall } from '../../test/support/answer-plan.ts';
import type { LoadShape } from './load-shape.ts';

/** Without a size of its own a file has as much as a small source file. */
const fileBytes = 2000;

export class TurnWork {
  readonly root = mkdtempSync(join(tmpdir(), 'dsh-acp-load-'));
  readonly #shape: LoadShape;

  constructor(shape: LoadShape) {
    this.#shape = shape;
  }

  /** Makes the workspace of one session. */
  workspace(name: string): Workspace {
    const path = join(this.root, name);
    mkdirSync(path);
    return new Workspace(path, this.#shape);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

export class Workspace {
  readonly path: string;
  readonly #shape: LoadShape;
  #turns = 0;

  constructor(path: string, shape: LoadShape) {
    this.path = path;
    this.#shape = shape;
    const line = 'words of a file that is read\n';
    const text = line.repeat(Math.ceil((shape.outputBytes || fileBytes) / line.length));
    if (shape.mix === 'reads' || shape.mix === 'edits') writeFileSync(join(path, 'file.txt'), `mark-0 of this file\n${text}`);
  }

  /** The plan of the next turn. @param delayMs between its deltas */
  nextTurn(delayMs: number): object {
    const { tokens, mix, outputBytes } = this.#shape;
    const padTo = mix === 'none' ? Math.ceil(outputBytes / tokens) : 0;
    const answer: AnswerPlan = { tokens, delayMs, stamp: 'due', ...(padTo > 0 ? { padTo } : {}) };
    const calls = this.#calls();
    this.#turns += 1;
    return calls.length === 0 ? answer : { plans: [...calls.map((tools) => ({ tools, delayMs: 0 })), answer] };
  }

  /** Whether its files hold what all turns so far must have left in them. */
  isDone(): boolean {
    const { mix } = this.#shape;
    if (this.#turns === 0) return true;
    if (mix === 'edits') return readFileSync(join(this.path, 'file.txt'), 'utf8').startsWith(`mark-${this.#turns} `);
    return mix !== 'commands' || statSync(join(this.path, 'turns')).size === this.#turns;
  }

  /** One list for each step. */
  #calls(): PlannedToolCall[][] {
    const { mix, outputBytes } = this.#shape;
    const file = { file_path: 'file.txt' };
    switch (mix) {
      case 'none':
        return [];
      case 'reads':
        return [[call('read', file), call('read', { ...file, limit: 5 })]];
      case 'commands': {
        const command = `printf x >> turns; head -c ${outputBytes || fileBytes} /dev/zero | tr '\\0' 'x' | fold -w 100`;
        return [[call('bash', { command, description: 'puts out text' })]];
      }
      case 'edits': {
        const edit = { ...file, old_string: `mark-${this.#turns} `, new_string: `mark-${this.#turns + 1} ` };
        return [[call('read', { ...file, limit: 5 })], [call('edit', edit)]];
      }
      default:
        throw new Error(`no such mix: ${String(mix)}`);
    }
  }
}

function call(name: string, args: object): PlannedToolCall {
  return { name, arguments: JSON.stringify(args) };
}
