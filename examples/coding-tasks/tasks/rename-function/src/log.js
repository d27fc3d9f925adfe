import { fmt } from './clock.js';

export function logLine(steps) {
  return steps.map((step) => `${step.name}: ${fmt(step.ms)}`).join(', ');
}
