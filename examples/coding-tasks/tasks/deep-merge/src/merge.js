/** Merges `extra` over `base`, objects member by member; everything else is replaced. Changes neither. */
export function merge(base, extra) {
  for (const [name, value] of Object.entries(extra)) {
    base[name] = isObject(base[name]) && isObject(value) ? merge(base[name], value) : value;
  }
  return base;
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}
