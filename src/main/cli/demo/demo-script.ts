/** What the demo's sessions are asked to do, in the command language of the scripted model, and how it is checked. */

/** The line of the example project that is wrong, and what mends it. */
export const fault = {
  file: 'src/stock.js',
  wrong: 'item.quantity < item.minimum',
  right: 'item.quantity <= item.minimum',
} as const;

/** Run by itself: `node --test` would start one more process for it, eight times over. */
export const testFile = 'test/inventory.test.js';

export const turns: readonly string[] = [
  `say I will read the project, look for the stock rules, and run the tests.
todo *Read the project; Run the tests; Mend the fault
read README.md
& read ${fault.file}
& glob src/*.js
grep minimum in src
run node ${testFile}
say The project is read and its tests have run. Next I mend the comparison in ${fault.file}.`,
  `say I mend the comparison, and run the tests again.
todo x Read the project; x Run the tests; *Mend the fault
edit ${fault.file} /${fault.wrong}/${fault.right}/
run node ${testFile}
todo x Read the project; x Run the tests; x Mend the fault
say The comparison now takes in the minimum itself, and the tests have run again.`,
];
