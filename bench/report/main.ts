/** `npm run bench:report`: the report and the pictures of README, from what was recorded. See bench/README.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ClassRecord, readClasses } from '../guard/record.ts';
import { gather } from './gather.ts';
import { reportPage } from './page.ts';
import { readmePictures } from './pictures.ts';
import { svgFile } from './svg.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const usage = `Usage: npm run bench:report -- [--class NAME] [--results DIR] [--out FILE] [--pictures DIR]

  --class NAME    a class of machines, as files of results are named; that of the newest result when not given
  --results DIR   where results are (bench/results)
  --out FILE      the page (bench/report.html)
  --pictures DIR  where the pictures of README go (docs/pictures)
`;

function fail(reason: string): never {
  process.stderr.write(`bench:report: ${reason}\n`);
  process.exit(2);
}

function options(): { readonly class?: string; readonly results: string; readonly out: string; readonly pictures: string } {
  try {
    const { values } = parseArgs({
      options: {
        class: { type: 'string' },
        results: { type: 'string', default: join(root, 'bench', 'results') },
        out: { type: 'string', default: join(root, 'bench', 'report.html') },
        pictures: { type: 'string', default: join(root, 'docs', 'pictures') },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (!values.help) return values;
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${usage}`);
  }
  process.stdout.write(usage);
  return process.exit(0);
}

function chosenRecord(results: string, name: string | undefined): ClassRecord {
  const classes = readClasses(results);
  const newest = [...classes].toSorted(([, a], [, b]) => ((a.parts.at(-1)?.at ?? '') < (b.parts.at(-1)?.at ?? '') ? 1 : -1))[0]?.[0];
  const record = classes.get(name ?? newest ?? '');
  if (record !== undefined) return record;
  const known = [...classes.keys()].join(', ');
  return fail(
    known === '' ? `${results} holds no results; npm run bench -- --record makes some` : `no class is named ${name}; there are ${known}`,
  );
}

const { class: name, results, out, pictures } = options();
const data = gather(chosenRecord(results, name));
writeFileSync(out, reportPage(data));
process.stdout.write(`${relative(root, out)}\n`);
mkdirSync(pictures, { recursive: true });
const files = readmePictures(data);
for (const [file, picture] of files) {
  writeFileSync(join(pictures, file), svgFile(picture));
  process.stdout.write(`${relative(root, join(pictures, file))}\n`);
}
