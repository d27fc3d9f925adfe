/**
 * Writes JUnit XML for CI systems: a test case for each attempt. `failed` is a failure, `error` and `budget` are errors; what was
 * cancelled or not run is skipped.
 */
import type { JobResult } from '../job-result.ts';
import { reasonText } from '../view/end-text.ts';
import { headOf } from '../view/visible-text.ts';
import { FileSink } from './file-sink.ts';
import type { RunExporter, RunFacts, UnrunAttempt } from './run-exporter.ts';
import { xmlAttribute, xmlText } from './xml.ts';

const longestName = 500;
const longestMessage = 1000;
const longestOutput = 16 * 1024;
const longestText = 4 * 1024;
const mostProperties = 50;
/** A file that names each of a million attempts that were not run helps nobody. */
const mostUnrun = 10_000;

export class JUnitFile implements RunExporter {
  readonly name = 'junit';
  readonly path: string;
  #sink: FileSink | undefined;
  #unrun: readonly UnrunAttempt[] = [];
  /** Attempts that were not run and that nobody can name, or too many. */
  #unnamed = 0;

  constructor(path: string) {
    this.path = path;
  }

  async open({ stats, outcome, unrun, agent, now }: RunFacts): Promise<void> {
    this.#sink = await FileSink.open(this.path);
    this.#unrun = unrun.slice(0, mostUnrun);
    this.#unnamed = Math.max(0, Math.max(outcome.notRun, unrun.length) - this.#unrun.length);
    const skipped = stats.of('cancelled') + this.#unrun.length + (this.#unnamed > 0 ? 1 : 0);
    const counts = {
      tests: stats.count - stats.of('cancelled') + skipped,
      failures: stats.of('failed'),
      errors: stats.of('error') + stats.of('budget'),
      skipped,
      time: seconds(stats.totalMs),
    };
    const figures = attributes(counts);
    const when = new Date(now).toISOString().slice(0, 19);
    await this.#write(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="dsh-acp run" ${figures}>
<testsuite name="dsh-acp run" ${figures} timestamp="${when}">
<properties>${property('agent', agent)}</properties>
`);
  }

  async add(result: JobResult): Promise<void> {
    await this.#write(
      `<testcase ${attributes({ name: headOf(result.key, longestName), classname: headOf(result.id, longestName), time: seconds(result.times.totalMs) })}>
${propertiesOf(result)}${outcomeOf(result)}${outputOf(result)}</testcase>
`,
    );
  }

  async close(): Promise<void> {
    for (const { key, id, labels } of this.#unrun) {
      const names = attributes({ name: headOf(key, longestName), classname: headOf(id, longestName), time: '0.000' });
      await this.#write(`<testcase ${names}>\n${labelProperties(labels)}<skipped message="not run"/>\n</testcase>\n`);
    }
    if (this.#unnamed > 0) {
      const names = attributes({ name: `${this.#unnamed} attempts that were not run`, classname: 'not-run', time: '0.000' });
      await this.#write(`<testcase ${names}><skipped message="not run"/></testcase>\n`);
    }
    await this.#write('</testsuite>\n</testsuites>\n');
    await this.#sink?.close();
  }

  async abandon(): Promise<void> {
    await this.#sink?.abandon();
  }

  async #write(text: string): Promise<void> {
    await this.#sink?.write(text);
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${xmlAttribute(String(value))}"`)
    .join(' ');
}

function property(name: string, value: string | number): string {
  return `<property ${attributes({ name: headOf(name, longestName), value: headOf(String(value), longestMessage) })}/>`;
}

/** Labels first, then what a CI page may want to show. */
function propertiesOf(result: JobResult): string {
  const { usage, costUsd, stopReason, logPath } = result;
  const facts = [
    property('repeat', result.repeat),
    property('seed', result.seed),
    property('status', result.status),
    ...(stopReason === undefined ? [] : [property('stop reason', stopReason)]),
    ...(usage === undefined
      ? []
      : [property('input tokens', usage.inputTokens + usage.cacheReadTokens), property('output tokens', usage.outputTokens)]),
    ...(costUsd === undefined ? [] : [property('cost usd', costUsd)]),
    ...(logPath === undefined ? [] : [property('log', logPath)]),
  ];
  return `<properties>${labelList(result.labels)}${facts.join('')}</properties>\n`;
}

function labelProperties(labels: Readonly<Record<string, string>>): string {
  const list = labelList(labels);
  return list === '' ? '' : `<properties>${list}</properties>\n`;
}

function labelList(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .slice(0, mostProperties)
    .map(([name, value]) => property(name, value))
    .join('');
}

function outcomeOf(result: JobResult): string {
  switch (result.status) {
    case 'passed':
    case 'completed':
      return '';
    case 'failed':
      return `<failure ${attributes({ message: headOf(reasonText(result), longestMessage), type: 'check' })}>${checkOutput(result)}</failure>\n`;
    case 'error':
    case 'budget': {
      const type = result.status === 'budget' ? 'budget' : (result.errorClass ?? 'error');
      const text = xmlText(result.error ?? result.stopReason ?? result.status, longestOutput);
      return `<error ${attributes({ message: headOf(reasonText(result), longestMessage), type })}>${text}</error>\n`;
    }
    case 'cancelled':
    default:
      return '<skipped message="cancelled"/>\n';
  }
}

function checkOutput({ check }: JobResult): string {
  return xmlText(check?.output ?? '', longestOutput);
}

function outputOf(result: JobResult): string {
  const text = result.text === '' ? '' : `<system-out>${xmlText(result.text, longestText)}</system-out>\n`;
  const check = result.status === 'failed' || result.check === undefined || result.check.output === '' ? '' : checkOutput(result);
  return check === '' ? text : `${text}<system-err>${check}</system-err>\n`;
}
