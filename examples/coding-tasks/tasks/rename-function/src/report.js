import { fmt } from './clock.js';

export function report(name, ms) {
  return `${name} took ${fmt(ms)}`;
}
