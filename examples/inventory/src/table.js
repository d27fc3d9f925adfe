const columns = ['name', 'quantity', 'minimum', 'price'];

function toCount(text, lineNumber) {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 0) throw new Error(`line ${lineNumber}: "${text}" is not a count`);
  return count;
}

/** Reads the comma-separated table of items; its first line names the columns. */
export function readTable(text, readPrice) {
  const [head, ...lines] = text.trim().split('\n');
  if (head.trim() !== columns.join(',')) throw new Error(`expected the columns ${columns.join(', ')}`);
  return lines.map((line, index) => {
    const [name, quantity, minimum, price] = line.split(',').map((cell) => cell.trim());
    return {
      name,
      quantity: toCount(quantity, index + 2),
      minimum: toCount(minimum, index + 2),
      price: readPrice(price),
    };
  });
}
