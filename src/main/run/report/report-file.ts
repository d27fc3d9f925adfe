/**
 * Writes `report.html` and a page for each job. Rows go out as they are read, so that memory does not grow with the run.
 */
import { statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import type { JobResult } from '../job-result.ts';
import { isGood } from '../view/statuses.ts';
import { FileSink } from './file-sink.ts';
import { type Html, html } from '../../transcript/html.ts';
import { jobRow } from './job-row.ts';
import { reportLink, transcriptLink, transcriptName, transcriptsDir, transcriptStyleName } from './page-names.ts';
import { pageFoot, pageHead, type PageShell } from '../../transcript/page-shell.ts';
import { transcriptStyle } from '../../transcript/page-style.ts';
import { reportStyle } from './page-style.ts';
import { reportHead, reportTitle, tableFoot, tableHead } from './report-page.ts';
import { reportScript } from './report-script.ts';
import type { RunExporter, RunFacts } from './run-exporter.ts';
import { writeJobPage } from './write-job-page.ts';

/** More make a page that browsers no longer take well. Good attempts give way to others. */
const mostRows = 20_000;

export class ReportFile implements RunExporter {
  readonly name = 'report';
  readonly path: string;
  readonly #mostRows: number;
  #sink: FileSink | undefined;
  #promptsOf: RunFacts['promptsOf'] = () => undefined;
  #shell: PageShell = { title: '', style: { text: reportStyle }, script: reportScript };
  /** How many more rows of each kind there is room for. */
  #goodRows = 0;
  #otherRows = 0;

  constructor(path: string, rows = mostRows) {
    this.path = path;
    this.#mostRows = rows;
  }

  async open(facts: RunFacts): Promise<void> {
    await mkdir(transcriptsDir(this.path), { recursive: true });
    await writeFile(`${transcriptsDir(this.path)}/${transcriptStyleName}`, transcriptStyle);
    const good = facts.stats.of('passed') + facts.stats.of('completed');
    this.#otherRows = Math.min(this.#mostRows, facts.stats.count - good);
    this.#goodRows = Math.min(good, this.#mostRows - this.#otherRows);
    this.#promptsOf = facts.promptsOf;
    this.#shell = { ...this.#shell, title: reportTitle(facts) };
    this.#sink = await FileSink.open(this.path);
    const omitted = facts.stats.count - this.#otherRows - this.#goodRows;
    await this.#write(html`${pageHead(this.#shell)}${reportHead(facts)}${tableHead(facts, omitted)}`);
  }

  async add(result: JobResult): Promise<void> {
    const path = `${transcriptsDir(this.path)}/${transcriptName(result.key)}`;
    if (!isMadeOf(result, path)) {
      await writeJobPage(result, { path, reportLink: reportLink(this.path), prompts: this.#promptsOf(result) });
    }
    if (this.#hasRoomFor(result)) await this.#write(jobRow(result, transcriptLink(this.path, result.key)));
  }

  async close(): Promise<void> {
    await this.#write(html`${tableFoot()}${pageFoot(this.#shell)}`);
    await this.#sink?.close();
  }

  async abandon(): Promise<void> {
    await this.#sink?.abandon();
  }

  #hasRoomFor({ status }: JobResult): boolean {
    if (isGood(status)) {
      this.#goodRows -= 1;
      return this.#goodRows >= 0;
    }
    this.#otherRows -= 1;
    return this.#otherRows >= 0;
  }

  async #write(part: Html): Promise<void> {
    await this.#sink?.write(part.text);
  }
}

/** A page is made behind its result, whole or not at all: one that is younger than the result tells of it, and stays as it is. */
function isMadeOf({ times }: JobResult, path: string): boolean {
  const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return mtimeMs !== undefined && mtimeMs >= Date.parse(times.endedAt);
}
