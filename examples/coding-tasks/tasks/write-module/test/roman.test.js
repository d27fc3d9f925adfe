import assert from 'node:assert/strict';
import { toRoman } from '../src/roman.js';

const known = { 1: 'I', 4: 'IV', 9: 'IX', 14: 'XIV', 40: 'XL', 90: 'XC', 400: 'CD', 1994: 'MCMXCIV', 2026: 'MMXXVI', 3999: 'MMMCMXCIX' };
for (const [number, text] of Object.entries(known)) assert.equal(toRoman(Number(number)), text);
for (const wrong of [0, -1, 4000, 1.5, Number.NaN, '7']) assert.throws(() => toRoman(wrong), RangeError);
console.log('ok');
