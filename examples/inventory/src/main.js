import { readFileSync } from 'node:fs';
import { toCents } from './money.js';
import { report } from './report.js';
import { readTable } from './table.js';

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node src/main.js TABLE.csv');
  process.exit(1);
}
console.log(report(readTable(readFileSync(file, 'utf8'), toCents)));
