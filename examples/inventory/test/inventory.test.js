import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showCents, toCents } from '../src/money.js';
import { report } from '../src/report.js';
import { take, totalValue, toReorder } from '../src/stock.js';
import { readTable } from '../src/table.js';

const table = 'name,quantity,minimum,price\nhammer,12,5,18.90\nsaw,3,3,24.50\nnails,400,500,0.02\n';
const items = readTable(table, toCents);

test('a table becomes items with prices in cents', () => {
  assert.deepEqual(items[0], { name: 'hammer', quantity: 12, minimum: 5, price: 1890 });
});

test('a wrong count is named with its line', () => {
  assert.throws(() => readTable('name,quantity,minimum,price\nsaw,many,1,1.00\n', toCents), /line 2/);
});

test('amounts are shown with two decimals', () => {
  assert.equal(showCents(toCents('7.05')), '7.05');
});

test('taking out leaves the old list alone', () => {
  assert.equal(take(items, 'hammer', 2)[0].quantity, 10);
  assert.equal(items[0].quantity, 12);
});

test('more than there is cannot be taken out', () => {
  assert.throws(() => take(items, 'saw', 4), /only 3/);
});

test('an item at its minimum is ordered again', () => {
  assert.deepEqual(
    toReorder(items).map((item) => item.name),
    ['nails', 'saw'],
  );
});

test('the report ends with what to order', () => {
  assert.equal(totalValue(items), 1890 * 12 + 2450 * 3 + 2 * 400);
  assert.match(report(items), /to order: nails/);
});
