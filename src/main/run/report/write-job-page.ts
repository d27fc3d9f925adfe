/**
 * One attempt's page: what came of it, its check, its session step by step, its patch.
 */
import type { JobResult } from '../job-result.ts';
import { exitText } from '../view/end-text.ts';
import { besideText, costText, countText, durationText } from '../view/figures.ts';
import { excerptOf, visibleLine } from '../view/visible-text.ts';
import { BoundedPieces } from '../../transcript/bounded-pieces.ts';
import { patchView } from '../../transcript/diff-view.ts';
import { usageText } from '../../transcript/event-lines.ts';
import { type Html, html, preformatted, shown } from '../../transcript/html.ts';
import { transcriptStyleName } from './page-names.ts';
import { PageSink } from './page-sink.ts';
import { pageFoot, pageHead } from '../../transcript/page-shell.ts';
import { damagedLine, eventLine, leftOutLine } from '../../transcript/item-html.ts';
import { readSessionLog } from '../../transcript/read-log.ts';
import { statusChip } from './status-chips.ts';
import { Transcript } from '../../transcript/transcript.ts';

/** Characters of a session's HTML; what follows is in the log. */
const mostChars = 6 * 1024 * 1024;
const longestOutput = 32 * 1024;
const longestText = 64 * 1024;

export interface JobPagePlace {
  readonly path: string;
  /** A relative link to the report. */
  readonly reportLink: string;
  /** Shown where there is no log that has them. */
  readonly prompts?: readonly string[] | undefined;
}

/** @throws the system's error when the page cannot be written; a log that cannot be read is said on the page */
export async function writeJobPage(result: JobResult, place: JobPagePlace): Promise<void> {
  const sink = new PageSink(place.path);
  try {
    const shell = { title: visibleLine(result.key, 120), style: { file: transcriptStyleName } };
    const nav = html`<nav><a href="${place.reportLink}">← all attempts</a></nav>\n`;
    const commands = html`${commandBlock('Setup', result.setup)}${commandBlock('Check', result.check)}`;
    sink.write(html`${pageHead(shell)}${nav}${headBlock(result)}${commands}`.text);
    if (result.logPath === undefined) sink.write(withoutLog(result, place.prompts ?? []).text);
    else await writeSession(sink, result.logPath, withoutLog(result, place.prompts ?? []));
    sink.write(html`${patchBlock(result)}${pageFoot(shell)}`.text);
    sink.close();
  } catch (error) {
    sink.abandon();
    throw error;
  }
}

function headBlock(result: JobResult): Html {
  const { usage, times, costUsd } = result;
  const rows: [string, Html | string | undefined][] = [
    [
      'status',
      html`${statusChip(result.status)}${result.stopReason === undefined ? undefined : html` ${visibleLine(result.stopReason, 60)}`}`,
    ],
    [
      'error',
      result.error === undefined ? undefined : html`<b>${result.errorClass ?? 'error'}</b> ${shown(excerptOf(result.error, 4000))}`,
    ],
    [
      'time',
      `${durationText(times.totalMs)}: setup ${durationText(times.setupMs)}, turns ${durationText(times.turnsMs)}, check ${durationText(times.checkMs)}`,
    ],
    ['began', visibleLine(times.startedAt, 40)],
    [
      'tokens',
      usage === undefined
        ? undefined
        : [usageText(usage), ...besideText(usage), `${countText(usage.steps)} steps, ${countText(usage.toolCalls)} tool calls`].join('; '),
    ],
    ['cost', costUsd === undefined ? undefined : costText(costUsd)],
    ['tries', result.tries > 1 ? String(result.tries) : undefined],
    ['seed', String(result.seed)],
    ['labels', labelsOf(result)],
    ['session', result.sessionId === undefined ? undefined : visibleLine(result.sessionId, 80)],
    ['log', result.logPath === undefined ? undefined : visibleLine(result.logPath, 400)],
  ];
  return html`<h1>${visibleLine(result.key, 300)}</h1>
<div class="card"><dl>${rows.map(([name, value]) => (value === undefined ? undefined : html`<dt>${name}</dt><dd>${value}</dd>`))}</dl></div>
`;
}

function labelsOf({ labels }: JobResult): Html | undefined {
  const entries = Object.entries(labels).slice(0, 40);
  if (entries.length === 0) return undefined;
  return html`${entries.map(([name, value]) => html`<span class="label">${visibleLine(name, 80)}=${visibleLine(value, 120)}</span> `)}`;
}

function commandBlock(title: string, run: JobResult['check']): Html {
  if (run === undefined) return html``;
  const good = run.exitCode === 0 && !run.timedOut;
  const chip = html`<span class="chip ${good ? 'ok-chip' : 'bad-chip'}">${visibleLine(exitText(run), 40)}</span>`;
  return html`<section class="card"><details${good ? undefined : html` open`}><summary><b>${title}</b> ${chip}</summary>
${run.output === '' ? html`<p class="none">no output</p>` : preformatted(excerptOf(run.output, longestOutput), 'out')}</details></section>
`;
}

/** Another agent keeps its session to itself: what is known is what it was asked and what it said last. */
function withoutLog(result: JobResult, prompts: readonly string[]): Html {
  const asked = prompts.map(
    (prompt) =>
      html`<div class="item user"><p class="who">prompt</p><div class="text">${shown(excerptOf(prompt, longestText))}</div></div>\n`,
  );
  const said =
    result.text === ''
      ? html`<p class="none">There is no final text.</p>`
      : html`<div class="item text">${shown(excerptOf(result.text, longestText))}</div>`;
  return html`${asked}${eventLine(html`there is no session log; the final text of the last turn:`)}${said}
`;
}

async function writeSession(sink: PageSink, logPath: string, instead: Html): Promise<void> {
  const transcript = new Transcript();
  const pieces = new BoundedPieces(mostChars, (text) => sink.write(text));
  const reading = await readSessionLog(logPath, {
    onHeader: (header) => {
      transcript.cwd = header.cwd;
      const agent = visibleLine(`${header.agent.name} ${header.agent.version}`, 100);
      pieces.add(eventLine(html`session in <code>${visibleLine(header.cwd, 300)}</code>, ${agent}`).text);
    },
    onEvent: (event) => pieces.add(transcript.next(event)),
  });
  pieces.add(transcript.end());
  pieces.end((left) => leftOutLine(left).text);
  const notes = [
    damagedLine(reading.damaged),
    reading.problem === undefined
      ? undefined
      : html`${eventLine(html`the session log cannot be shown: ${visibleLine(reading.problem, 300)}`, true)}${instead}`,
  ];
  sink.write(html`${notes}`.text);
}

function patchBlock({ patch, patchPath }: JobResult): Html {
  if (patch !== undefined && patch !== '')
    return html`<section class="card"><h2>Patch</h2>${patchView(`${countText(patch.length)} characters`, patch)}</section>`;
  return patchPath === undefined ? html`` : html`<section class="card"><h2>Patch</h2><p>${visibleLine(patchPath, 400)}</p></section>`;
}
