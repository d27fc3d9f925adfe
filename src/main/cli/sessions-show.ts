/** `dsh-acp sessions show`: one session as text, as a page, or as facts for programs. Reads only, and takes no lock. */
import { statSync } from 'node:fs';
import { ServerError } from '../../shared/errors.ts';
import { isLockHeld } from '../../shared/log/session-lock.ts';
import { sessionPaths } from '../../shared/log/session-paths.ts';
import { readTitleFile } from '../../shared/log/title-file.ts';
import { FileSink } from '../run/report/file-sink.ts';
import { costText, countText } from '../run/view/figures.ts';
import { visibleLine } from '../run/view/visible-text.ts';
import { usageText } from '../transcript/event-lines.ts';
import { itemText } from '../transcript/item-text.ts';
import type { Paint } from '../transcript/paint.ts';
import { ItemReader } from '../transcript/read-items.ts';
import { type LogReading, readSessionLog } from '../transcript/read-log.ts';
import { SessionFacts } from '../transcript/session-facts.ts';
import { sessionPage } from '../transcript/session-page.ts';
import type { TranscriptItem } from '../transcript/transcript-item.ts';
import type { CommandOutput } from './sessions-output.ts';

export interface ShownSession {
  readonly stateDir: string;
  readonly id: string;
}

/** Ends the reading of a log once its text goes nowhere. */
const nobodyReads = new Error('the output is closed');

/** Streams: memory does not grow with the log. */
export async function showText({ stateDir, id }: ShownSession, output: CommandOutput, paint: Paint): Promise<void> {
  const { log, spillDir, lock } = sessionPaths(stateDir, id);
  const items = new ItemReader();
  const facts = new SessionFacts();
  let cwd = '/';
  const write = async (read: () => readonly TranscriptItem[]): Promise<void> => {
    let text: string;
    try {
      text = read()
        .map((item) => itemText(item, cwd, paint))
        .join('');
    } catch {
      text = `${paint('red', '· an event that cannot be shown')}\n`;
    }
    await output.write(text);
  };
  const reading = await readSessionLog(log, {
    onHeader: async (header) => {
      facts.onHeader(header);
      ({ cwd } = header);
      const title = readTitleFile(spillDir);
      const open = isLockHeld(lock) ? `, ${paint('green', 'open')}` : '';
      const began = `${visibleLine(header.createdAt, 40).slice(0, 19).replace('T', ' ')} UTC`;
      await output.write(
        `${title === undefined ? '' : `${paint('bold', title)}\n`}${paint('cyan', id)}  ${paint('dim', `${began}, ${visibleLine(cwd, 400)}`)}${open}\n`,
      );
    },
    onEvent: async (event) => {
      if (output.closed) throw nobodyReads;
      observe(facts, event);
      await write(() => items.next(event));
    },
  }).catch((error: unknown) => {
    if (error !== nobodyReads) throw error;
    return undefined;
  });
  if (reading === undefined) return;
  await write(() => items.end());
  await output.write(`\n${endText(facts, reading, paint)}`);
}

function endText(facts: SessionFacts, { damaged, problem }: LogReading, paint: Paint): string {
  const cost = facts.costUsd === undefined ? '' : `, ${costText(facts.costUsd)}`;
  const counts = `${countText(facts.turnCount)} turns, ${countText(facts.steps)} steps, ${countText(facts.toolCalls)} tool calls`;
  const lines = [paint('dim', `${counts}, ${usageText(facts.tokens)}${cost}`)];
  if (damaged > 0) lines.push(paint('red', `${countText(damaged)} lines of the log could not be read`));
  if (problem !== undefined) lines.push(paint('red', `the log cannot be shown further: ${visibleLine(problem, 300)}`));
  return `${lines.join('\n')}\n`;
}

/** What is known of the session as one JSON object; its last 1,000 turns are in it. */
export async function showJson({ stateDir, id }: ShownSession): Promise<string> {
  const { log, spillDir, lock } = sessionPaths(stateDir, id);
  const facts = new SessionFacts();
  const { damaged, problem } = await readSessionLog(log, {
    onHeader: (header) => facts.onHeader(header),
    onEvent: (event) => observe(facts, event),
  });
  const { header } = facts;
  const stat = statSync(log, { throwIfNoEntry: false });
  const shown = {
    id,
    title: readTitleFile(spillDir) ?? facts.title ?? null,
    cwd: header?.cwd ?? null,
    createdAt: header?.createdAt ?? null,
    updatedAt: stat?.mtime.toISOString() ?? null,
    open: isLockHeld(lock),
    agent: header?.agent ?? null,
    ...(header?.forkedFrom === undefined ? {} : { forkedFrom: header.forkedFrom }),
    model: facts.model ?? null,
    mode: facts.mode ?? null,
    usage: {
      ...facts.tokens,
      steps: facts.steps,
      toolCalls: facts.toolCalls,
      ...(facts.costUsd === undefined ? {} : { costUsd: facts.costUsd }),
    },
    turnCount: facts.turnCount,
    turns: facts.turns.map((turn) => ({
      ...turn,
      prompt: turn.prompt ?? null,
      endedAt: turn.endedAt ?? null,
      reason: turn.reason ?? null,
      usage: turn.usage ?? null,
    })),
    logPath: log,
    logBytes: stat?.size ?? null,
    events: facts.events,
    damaged,
    ...(problem === undefined ? {} : { problem }),
  };
  return `${JSON.stringify(shown, undefined, 1)}\n`;
}

/**
 * @param file where the page goes; `undefined` for the output
 * @throws ServerError INTERNAL when the file cannot be written
 */
export async function showPage({ stateDir, id }: ShownSession, output: CommandOutput, file: string | undefined): Promise<void> {
  const { log, lock } = sessionPaths(stateDir, id);
  const parts = await sessionPage({ id, logPath: log, open: isLockHeld(lock) });
  if (file === undefined) {
    for (const part of parts) await output.write(part);
    return;
  }
  await writeParts(file, parts);
  await output.write(`${file}\n`);
}

async function writeParts(file: string, parts: readonly string[]): Promise<void> {
  try {
    const sink = await FileSink.open(file);
    for (const part of parts) await sink.write(part);
    await sink.close();
  } catch (error) {
    throw new ServerError('INTERNAL', `${file} cannot be written: ${error instanceof Error ? error.message : 'unknown fault'}.`, {
      cause: error,
    });
  }
}

function observe(facts: SessionFacts, event: Parameters<SessionFacts['onEvent']>[0]): void {
  try {
    facts.onEvent(event);
  } catch {
    // Data that is not what its type says: the transcript says so where it stands.
  }
}
