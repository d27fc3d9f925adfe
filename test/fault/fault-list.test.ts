/** Every numbered fault has its test, or its reason; and every test of a fault checks what must hold after it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { cannotHappen, deviations, inParts, lastFault, testedElsewhere, withoutServer } from './fault-list.ts';

const folder = fileURLToPath(new URL('../../../test/', import.meta.url));
const texts = readdirSync(folder, { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }));

interface Named {
  readonly file: string;
  /** What the test is made with; an awaited `t.test` stands within another one. */
  readonly how: string;
  readonly faults: readonly number[];
}

/** From the names of tests, also where a table of them gives the number. */
function namedTests(): Named[] {
  const named = /(await t\.test|t\.test|faultTest|partTest)\(\s*['"`]fault ([\d, ]+):|(\{ fault): (\d+),/g;
  return texts.flatMap(({ file, text }) =>
    [...text.matchAll(named)].map(([, how, list, table, one]) => ({
      file,
      how: how ?? (table === undefined ? '' : 'faultTest'),
      faults: (list ?? one ?? '').split(',').map(Number),
    })),
  );
}

const tests = namedTests();
const numbersOf = (fits: (test: Named) => boolean): Set<number> => new Set(tests.filter(fits).flatMap(({ faults }) => faults));
const named = numbersOf(() => true);
const throughServer = numbersOf(({ how }) => how === 'faultTest' || how === 'await t.test');
const listed = (number: number): boolean => number in testedElsewhere || number in cannotHappen;

t.test('each fault is tested by its number, or stands in the list with a place or a reason', async (t) => {
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

t.test('each is tested with what must hold after a fault: through a server, and in a part only where the list says why', async (t) => {
  t.same(
    tests.filter(({ how }) => how === 't.test').map(({ file, faults }) => `${file}: ${faults.join()}`),
    [],
    'no test of a fault goes without',
  );
  const withServer = [...named].filter((number) => !throughServer.has(number)).map(String);
  t.same(withServer.sort(), Object.keys(withoutServer).sort());
  t.same([...numbersOf(({ how }) => how === 'partTest')].map(String).sort(), Object.keys(inParts).sort());
});
