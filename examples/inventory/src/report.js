import { showCents } from './money.js';
import { toReorder, totalValue } from './stock.js';

export function report(items) {
  const lines = items.map((item) => `${item.name.padEnd(10)} ${String(item.quantity).padStart(5)}  ${showCents(item.price).padStart(8)}`);
  const orders = toReorder(items).map((item) => item.name);
  return [
    ...lines,
    `total value: ${showCents(totalValue(items))}`,
    `to order: ${orders.length === 0 ? 'nothing' : orders.join(', ')}`,
  ].join('\n');
}
