/** "18.90" to 1890: amounts are whole cents, so that sums are exact. */
export function toCents(text) {
  const match = /^(\d+)(?:\.(\d{2}))?$/.exec(text);
  if (match === null) throw new Error(`"${text}" is not a price`);
  return Number(match[1]) * 100 + Number(match[2] ?? 0);
}

export function showCents(cents) {
  return `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
}
