/** Takes some of an item out; gives the new list and leaves the old one as it was. */
export function take(items, name, quantity) {
  const item = items.find((each) => each.name === name);
  if (item === undefined) throw new Error(`there is no ${name}`);
  if (item.quantity < quantity) throw new Error(`only ${item.quantity} of ${name} left`);
  return items.map((each) => (each === item ? { ...each, quantity: each.quantity - quantity } : each));
}

/** The items that have to be ordered again, the most urgent first. */
export function toReorder(items) {
  return items
    .filter((item) => item.quantity < item.minimum)
    .sort((a, b) => a.quantity - a.minimum - (b.quantity - b.minimum));
}

export function totalValue(items) {
  return items.reduce((sum, item) => sum + item.quantity * item.price, 0);
}
