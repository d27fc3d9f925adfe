import assert from 'node:assert/strict';
import { splitLine } from '../src/csv.js';

assert.deepEqual(splitLine('a,b,c'), ['a', 'b', 'c']);
assert.deepEqual(splitLine('a,,c'), ['a', '', 'c']);
assert.deepEqual(splitLine('"Smith, J.",42'), ['Smith, J.', '42']);
assert.deepEqual(splitLine('"say ""hi""",x'), ['say "hi"', 'x']);
assert.deepEqual(splitLine('""'), ['']);
console.log('ok');
