/**
 * JUnit XML, read back with a strict parser.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, property, string } from 'fast-check';
import { SaxesParser } from 'saxes';
import t, { type Test } from 'tap';
import type { Attempt } from '../../../../../src/main/run/job.ts';
import type { JobResult } from '../../../../../src/main/run/job-result.ts';
import { exportRun } from '../../../../../src/main/run/report/export-run.ts';
import { JUnitFile } from '../../../../../src/main/run/report/junit-file.ts';
import { TimeLine } from '../../../../../src/main/run/report/time-line.ts';
import { xmlAttribute, xmlText } from '../../../../../src/main/run/report/xml.ts';
import { visibleText } from '../../../../../src/main/run/view/visible-text.ts';
import type { RunOutcome } from '../../../../../src/main/run/run-event.ts';
import { outcomeOf, sampleResult } from '../../../../support/run-samples.ts';

interface XmlElement {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: XmlElement[];
  text: string;
}

function parseXml(text: string): XmlElement {
  const parser = new SaxesParser();
  const top: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const stack = [top];
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => {
    const element: XmlElement = { name, attributes, children: [], text: '' };
    stack.at(-1)!.children.push(element);
    stack.push(element);
  });
  parser.on('text', (piece) => {
    stack.at(-1)!.text += piece;
  });
  parser.on('closetag', () => {
    stack.pop();
  });
  parser.write(text).close();
  return top.children[0]!;
}

interface Options {
  readonly outcome?: Partial<RunOutcome>;
  readonly attempts?: readonly Attempt[];
}

async function junitOf(t: Test, results: readonly JobResult[], { outcome, attempts }: Options = {}): Promise<XmlElement> {
  const dir = t.testdir({});
  writeFileSync(join(dir, 'results.jsonl'), results.map((result) => `${JSON.stringify(result)}\n`).join(''));
  const [written] = await exportRun({
    resultsPath: join(dir, 'results.jsonl'),
    exporters: [new JUnitFile(join(dir, 'junit.xml'))],
    outcome: outcomeOf(results, outcome),
    timeLine: new TimeLine(),
    attempts,
    cancelled: [],
    now: 0,
  });
  t.equal(written?.problem, undefined);
  return parseXml(readFileSync(join(dir, 'junit.xml'), 'utf8'));
}

const casesOf = (suites: XmlElement) => suites.children[0]!.children.filter(({ name }) => name === 'testcase');
const childOf = (element: XmlElement, name: string) => element.children.find((child) => child.name === name);

t.test('each attempt is a test case with its outcome, and the suite counts them', async (t) => {
  const check = { exitCode: 1, signal: null, timedOut: false, output: 'expected 4\ngot 3\n' };
  const suites = await junitOf(t, [
    sampleResult({ key: 'good', id: 'good', labels: { suite: 'a', 'odd <name>': '"x"' }, seed: 3 }),
    sampleResult({ key: 'bad#2', id: 'bad', repeat: 1, status: 'failed', check }),
    sampleResult({ key: 'broken', id: 'broken', status: 'error', errorClass: 'model', error: 'answered 500' }),
    sampleResult({ key: 'spent', id: 'spent', status: 'budget', stopReason: 'max_turn_requests' }),
    sampleResult({ key: 'plain', id: 'plain', status: 'completed' }),
    sampleResult({ key: 'left', id: 'left', status: 'cancelled' }),
  ]);
  t.match(suites.children[0]!.attributes, { tests: '6', failures: '1', errors: '2', skipped: '1', time: '73.800' });
  const [good, bad, broken, spent, plain, left] = casesOf(suites);
  t.match(good, { attributes: { name: 'good', classname: 'good', time: '12.300' } });
  t.same(
    good!.children.map(({ name }) => name),
    ['properties', 'system-out'],
  );
  const properties = childOf(good!, 'properties')!.children.map(({ attributes }) => attributes);
  t.match(properties.slice(0, 3), [
    { name: 'suite', value: 'a' },
    { name: 'odd <name>', value: '"x"' },
    { name: 'repeat', value: '0' },
  ]);
  t.ok(properties.some(({ name, value }) => name === 'seed' && value === '3'));
  t.match(bad!.attributes, { name: 'bad#2', classname: 'bad' });
  t.match(childOf(bad!, 'failure'), { attributes: { type: 'check', message: 'check: exit 1: got 3' }, text: 'expected 4\ngot 3\n' });
  t.match(childOf(broken!, 'error'), { attributes: { type: 'model', message: 'model: answered 500' }, text: 'answered 500' });
  t.match(childOf(spent!, 'error'), { attributes: { type: 'budget', message: 'stopped: max_turn_requests' } });
  t.equal(childOf(plain!, 'error') ?? childOf(plain!, 'failure') ?? childOf(plain!, 'skipped'), undefined);
  t.match(childOf(left!, 'skipped'), { attributes: { message: 'cancelled' } });
});

t.test('attempts that were not run are skipped: by name where they are known, else as a number', async (t) => {
  const attempt = (key: string): Attempt => ({
    key,
    repeat: 0,
    seed: 0,
    modelSeed: undefined,
    job: { id: key, hash: 'h', labels: { suite: 's' }, prompts: [] } as never,
  });
  const named = await junitOf(t, [sampleResult({ key: 'a', id: 'a' })], {
    attempts: [attempt('a'), attempt('b'), attempt('c')],
    outcome: { notRun: 2, total: 3 },
  });
  t.same(
    casesOf(named).map(({ attributes }) => attributes['name']),
    ['a', 'b', 'c'],
  );
  t.match(named.children[0]!.attributes, { tests: '3', skipped: '2' });
  const unnamed = await junitOf(t, [sampleResult()], { outcome: { notRun: 2, total: 3 } });
  t.match(casesOf(unnamed)[1], { attributes: { name: '2 attempts that were not run' }, children: [{ name: 'skipped' }] });
  t.match(unnamed.children[0]!.attributes, { tests: '2', skipped: '1' });
});

t.test('output is bounded, and hostile output is valid XML', async (t) => {
  const evil = '\u0000\u001b[2J\ud800]]><!--<a>&\ufffe\u{1fffe}';
  const output = `begin ${evil}${'x'.repeat(1_000_000)} the end`;
  const suites = await junitOf(t, [
    sampleResult({
      key: evil,
      id: evil,
      status: 'failed',
      check: { exitCode: 1, signal: null, timedOut: false, output },
      text: output,
      error: evil,
      labels: { [evil]: evil },
    }),
  ]);
  const [only] = casesOf(suites);
  const { text } = childOf(only!, 'failure')!;
  t.ok(text.length < 20_000);
  t.match(text, /^begin ‹NUL›‹ESC›\[2J‹U\+D800›\]\]><!--<a>&/);
  t.match(text, /characters left out[^]*the end$/);
  t.ok(childOf(only!, 'system-out')!.text.length < 6000);
  t.equal(only!.attributes['name'], visibleText(evil));
});

t.test('any text comes out of the XML as it went in', async () => {
  assert(
    property(string({ unit: 'binary' }), (text) => {
      const { attributes, text: content } = parseXml(`<a b="${xmlAttribute(text)}">${xmlText(text, 1e6)}</a>`);
      return attributes['b'] === visibleText(text) && content === visibleText(text);
    }),
    { numRuns: 300 },
  );
});
