/** Charts and page of the bench: the same data gives the same bytes, readable without a script, a network or eyes. */
import { SaxesParser } from 'saxes';
import t from 'tap';
import { gather, mainLoad, peerBars } from '../../../bench/report/gather.ts';
import { growthPicture } from '../../../bench/report/growth-curves.ts';
import { latencyPictures } from '../../../bench/report/latency-curves.ts';
import { logAxes, ticksOf } from '../../../bench/report/log-axes.ts';
import { reportPage } from '../../../bench/report/page.ts';
import { readmePictures } from '../../../bench/report/pictures.ts';
import { ratioBars } from '../../../bench/report/ratio-bars.ts';
import { short, svgFile } from '../../../bench/report/svg.ts';
import { sampleFigure, sampleMachine, samplePart, sampleRecord } from './sample-results.ts';

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** All elements. @throws Error where it is not well-formed */
function elementsOf(xml: string): Element[] {
  const elements: Element[] = [];
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => elements.push({ name, attributes }));
  parser.write(xml).close();
  return elements;
}

t.test('the same results give the same bytes, whatever the order of reading', async (t) => {
  t.equal(reportPage(gather(sampleRecord())), reportPage(gather(structuredClone(sampleRecord()))));
  const files = (): string[] => [...readmePictures(gather(sampleRecord()))].map(([name, picture]) => name + svgFile(picture));
  t.same(files(), files());
});

t.test('the page needs nothing else, and shows each section with a table behind its charts', async (t) => {
  const page = reportPage(gather(sampleRecord()));
  t.notMatch(page, /<script|<link|<img|@import|url\(/);
  t.same([...new Set(page.match(/https?:[^"' <]+/g))], ['http://www.w3.org/2000/svg']);
  t.match(page, /prefers-color-scheme:dark/);
  for (const svg of page.match(/<svg .*?<\/svg>/gs)!) {
    const [root, title, desc] = elementsOf(svg);
    t.same([root?.name, title?.name, desc?.name], ['svg', 'title', 'desc']);
    t.equal(root?.attributes['aria-labelledby'], `${title?.attributes['id']} ${desc?.attributes['id']}`);
  }
  for (const id of ['floor', 'latency', 'growth', 'peers'])
    t.match(page, new RegExp(`<section id="${id}">.*<svg.*<details>.*<table>.*</section>`, 's'));
  t.match(page, /stub &lt;source&gt; &amp; pipe/, 'names are text, not markup');
  t.match(page, /1 of 2 sizes that have a target hold/);
  t.match(page, /Others used more than 20 % of all cores around: rates/);
  t.match(page, /pi-acp \(not run with 200 sessions: 50 take gigabytes\)/);
});

t.test('a section without data says so, and how to get some', async (t) => {
  const data = gather({ machine: sampleMachine, parts: [samplePart('targets', { figures: [sampleFigure('total', 1.1)] })] });
  const page = reportPage(data);
  t.equal(page.match(/Nothing is recorded for this section/g)?.length, 5);
  t.match(page, /npm run bench -- --full --record growth/);
  t.same([...readmePictures(data).keys()], ['bench-ratios.svg']);
  t.doesNotThrow(() => reportPage(gather({ machine: sampleMachine, parts: [] })));
});

t.test('pictures of README are whole files with a background and both schemes', async (t) => {
  const files = readmePictures(gather(sampleRecord()));
  t.same([...files.keys()], ['bench-ratios.svg', 'bench-latency.svg', 'bench-growth.svg', 'bench-peers.svg']);
  for (const picture of files.values()) {
    const svg = svgFile(picture);
    t.ok(elementsOf(svg).some(({ attributes }) => attributes['class'] === 'page'));
    t.match(svg, /prefers-color-scheme:dark/);
  }
});

t.test('twice as much and half as much are bars of one length, on either side of 1', async (t) => {
  const bars = [
    { label: 'twice', ratio: 2, low: 1.9, high: 2.2, most: 1.5 },
    { label: 'half', ratio: 0.5 },
  ];
  const { body } = ratioBars({ title: 'x', desc: 'x', bars, one: 'floor', above: 'ours' });
  const [twice, half] = elementsOf(`<svg>${body}</svg>`).filter(({ name }) => name === 'rect');
  t.equal(twice?.attributes['width'], half?.attributes['width']);
  t.same([twice?.attributes['class'], half?.attributes['class']], ['bar-ours', 'bar-less']);
  t.ok(Math.abs(Number(half?.attributes['x']) + Number(half?.attributes['width']) - Number(twice?.attributes['x'])) < 0.11);
  t.match(body, /<title>twice: 2.00 × \(1.9–2.2\), at most 1.5<\/title>/);
  t.match(body, /class="bad">2.00 ×/);
});

t.test('what is flat looks flat: an axis holds a decade at least, with round ticks', async (t) => {
  const plan = { width: 400, height: 300, title: 'x', xLabel: 'x', yLabel: 'y' };
  const { y } = logAxes({ ...plan, xs: [1, 1000], ys: [3, 3.3] });
  const [low, high] = y.domain() as [number, number];
  t.ok(high / low > 9.99);
  t.same(
    ticksOf(y),
    [1, 2, 5, 10].filter((tick) => tick >= low && tick <= high),
  );
  const { y: tall } = logAxes({ ...plan, xs: [1], ys: [0.02, 90_000] });
  t.same(ticksOf(tall), [1, 100, 10_000]);
});

t.test('a growth curve shows its points, its fit and the linear guide within the plot, and a verdict', async (t) => {
  const [flat, , steep] = sampleRecord().parts.find(({ name }) => name === 'growth-sessions')!.results.growth;
  const picture = growthPicture(steep!)!;
  const elements = elementsOf(`<svg>${picture.body}</svg>`);
  t.equal(elements.filter(({ name }) => name === 'circle').length, 5);
  t.match(picture.body, /class="bad" text-anchor="end">size\^1.40, at most 1.1/);
  t.match(picture.desc, /Grows as size\^1.40; more than 1.1 is asked for/);
  for (const one of [flat!, steep!]) {
    const guide = elementsOf(`<svg>${growthPicture(one)!.body}</svg>`).find(({ attributes }) => attributes['class'] === 'guide')!;
    for (const key of ['y1', 'y2']) t.ok(Number(guide.attributes[key]) >= 50 && Number(guide.attributes[key]) <= 240, `${one.what} ${key}`);
  }
  t.equal(growthPicture({ ...flat!, points: [{ size: 1, cost: 0 }] }), undefined);
  t.match(growthPicture({ ...flat!, points: [{ size: 1, cost: 2 }], exponent: Number.NaN })!.body, /too few sizes/);
});

t.test('latency has a plot for each agent and loop, the floor in each, and labels that do not cover each other', async (t) => {
  const pictures = latencyPictures(gather(sampleRecord()).latencies);
  t.same(
    pictures.map(({ title }) => title),
    ['ours, shared, closed loop', 'ours, shared, open loop'],
  );
  const labels = [...pictures[0]!.body.matchAll(/<text x="308" y="([\d.]+)"/g)].map((match) => Number(match[1])).toSorted((a, b) => a - b);
  t.equal(labels.length, 6);
  for (const [index, y] of labels.slice(1).entries()) t.ok(y - labels[index]! >= 12.9);
});

t.test('peers: theirs by ours with the spread of their rounds, and the load that says most is the one of README', async (t) => {
  const { peers } = gather(sampleRecord());
  const [floor, , gemini] = peerBars(peers, 'total');
  t.match(floor, { label: 'floor 1.2.3', ratio: 0.6 });
  t.match(gemini, { ratio: 3.2, low: (3.2 * 1000) / 1100, high: (3.2 * 1300) / 1100 });
  t.notOk(peerBars(peers, 'memory')[0]?.low);
  t.same(peerBars([{ ...peers[1]!, toOurs: { ...peers[1]!.toOurs, firstToken: Number.NaN } }], 'firstToken'), []);
  const few = peers.slice(0, 2).map((row) => ({ ...row, sessions: 1 }));
  t.equal(mainLoad([...few, ...peers])?.load, '200 sessions × 200, 5 ms');
});

t.test('a later run of a part takes the place of an earlier one', async (t) => {
  const parts = [0.9, 1.1].map((ratio) =>
    samplePart('targets', { figures: [sampleFigure('total (floor 5): ms', ratio), sampleFigure('other', 1)] }),
  );
  const { figures, figureBars } = gather({ machine: sampleMachine, parts });
  t.same(
    figures.map(({ toFloor }) => toFloor),
    [1.1, 1],
  );
  t.match(figureBars[0], { label: 'total: ms', ratio: 1.1 });
});

t.test('numbers are short', async (t) => {
  t.same([0.05, 1.314, 12.44, 950, 4321, 40_000, 1.5e6, Number.NaN].map(short), [
    '0.05',
    '1.31',
    '12.4',
    '950',
    '4321',
    '40k',
    '1.5M',
    '–',
  ]);
});
