/** The charts of the report, each from the gathered data; `undefined` or none where there is nothing to draw. */
import type { PeerRow } from '../run.ts';
import { mainLoad, peerBars, peerMetrics, type ReportData } from './gather.ts';
import { growthPicture } from './growth-curves.ts';
import { latencyPictures } from './latency-curves.ts';
import { ratioBars, type RatioBar, told } from './ratio-bars.ts';
import { inRows, type Picture } from './svg.ts';

/** How far ahead of others ours is meant to be. */
const ahead = 3;
const readmeWidth = 760;

export function floorPicture(title: string, bars: readonly RatioBar[], width?: number): Picture | undefined {
  if (bars.length === 0) return undefined;
  const desc = `How many times what the floor agent needs ours needs, in the same run: ${bars.map(told).join('; ')}.`;
  return ratioBars({ title, desc, bars, one: 'floor', above: 'ours', ...(width === undefined ? {} : { width }) });
}

/** A chart for each cost, on one scale. */
export function peerPictures(rows: readonly PeerRow[]): Picture[] {
  const charts = peerMetrics.map(({ key, what }) => ({ what, bars: peerBars(rows, key) })).filter(({ bars }) => bars.length > 0);
  const scaleTo = charts.flatMap(({ bars }) => bars.flatMap(({ ratio, low = ratio, high = ratio }) => [low, high]));
  return charts.map(({ what, bars }) =>
    ratioBars({
      title: what,
      desc: `${what}, theirs divided by ours: ${bars.map(told).join('; ')}.`,
      bars,
      one: 'ours',
      lineAt: { value: ahead, label: `${ahead} ×` },
      above: 'theirs',
      scaleTo,
    }),
  );
}

/** For README, by the name of the file. */
export function readmePictures(data: ReportData): ReadonlyMap<string, Picture> {
  const files = new Map<string, Picture>();
  const ratios = floorPicture('What the server needs, as a multiple of the least an agent can do', data.figureBars, readmeWidth);
  if (ratios !== undefined) files.set('bench-ratios.svg', ratios);
  addRows(files, 'bench-latency.svg', latencyPictures(data.latencies), 'What is added to each delta');
  addRows(files, 'bench-growth.svg', growthPictures(data), 'How costs grow');
  const main = mainLoad(data.peers);
  if (main !== undefined)
    addRows(files, 'bench-peers.svg', peerPictures(main.rows), `What others need, divided by what ours needs: ${main.load}`);
  return files;
}

export function growthPictures({ growth }: ReportData): Picture[] {
  return growth.map(growthPicture).filter((picture) => picture !== undefined);
}

function addRows(files: Map<string, Picture>, name: string, pictures: readonly Picture[], title: string): void {
  if (pictures.length === 0) return;
  files.set(name, inRows(pictures, 2, { title, desc: pictures.map(({ desc }) => desc).join(' ') }));
}
