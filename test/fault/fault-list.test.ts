/** Every numbered fault has its test, or its reason. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { cannotHappen, deviations, lastFault, testedElsewhere } from './fault-list.ts';

const folder = fileURLToPath(new URL('../../../test/', import.meta.url));

/** From the names of tests, also where a table of them gives the number. */
function namedFaults(): Set<number> {
  const files = readdirSync(folder, { recursive: true }).map(String);
  const texts = files.filter((file) => file.endsWith('.test.ts')).map((file) => readFileSync(join(folder, file), 'utf8'));
  const names = texts.flatMap((text) => [...text.matchAll(/['"`]fault ([\d, ]+):|\{ fault: (\d+),/g)]);
  return new Set(names.flatMap(([, list, one]) => (list ?? one ?? '').split(',').map(Number)));
}

t.test('each fault is tested by its number, or stands in the list with a place or a reason', async (t) => {
  const named = namedFaults();
  const listed = (number: number): boolean => number in testedElsewhere || number in cannotHappen;
  const all = Array.from({ length: lastFault }, (_, index) => index + 1);
  t.same(
    all.filter((number) => !named.has(number) && !listed(number)),
    [],
    'nothing is missing',
  );
  t.same(
    all.filter((number) => named.has(number) && listed(number)),
    [],
    'nothing is listed that has a test of its name',
  );
  t.same(
    Object.keys(deviations).filter((number) => !named.has(Number(number))),
    [],
    'what is said about a test is said about one that is there',
  );
  for (const file of Object.values(testedElsewhere)) t.ok(existsSync(join(folder, file)), file);
});
