import assert from 'node:assert/strict';
import { merge } from '../src/merge.js';

const base = { a: 1, nested: { x: 1, y: [1, 2] } };
const extra = { b: 2, nested: { y: [3], z: null } };
const copies = structuredClone([base, extra]);
assert.deepEqual(merge(base, extra), { a: 1, b: 2, nested: { x: 1, y: [3], z: null } });
assert.deepEqual([base, extra], copies, 'neither argument is changed');
merge({}, JSON.parse('{"__proto__": {"polluted": true}}'));
assert.equal({}.polluted, undefined, 'prototypes are left alone');
console.log('ok');
