import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import * as clock from '../src/clock.js';
import { logLine } from '../src/log.js';
import { report } from '../src/report.js';

assert.equal(typeof clock.formatDuration, 'function', 'clock.js exports formatDuration');
assert.equal(clock.fmt, undefined, 'the old name is gone');
assert.equal(report('build', 1500), 'build took 1.5 s');
assert.equal(logLine([{ name: 'a', ms: 5 }, { name: 'b', ms: 2000 }]), 'a: 5 ms, b: 2.0 s');
for (const name of readdirSync('src')) assert.doesNotMatch(readFileSync(`src/${name}`, 'utf8'), /\bfmt\b/, `src/${name}`);
console.log('ok');
