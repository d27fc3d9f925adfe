/** A page of a long session has its beginning and its end. */
import t from 'tap';
import { BoundedPieces } from '../../../../src/main/transcript/bounded-pieces.ts';

function passed(pieces: readonly string[], most: number): string {
  let text = '';
  const bounded = new BoundedPieces(most, (piece) => (text += piece));
  for (const piece of pieces) bounded.add(piece);
  bounded.end((left) => `[${left}]`);
  return text;
}

t.test('what fits goes through as it is', async (t) => {
  t.equal(passed(['a', '', 'b', 'c'], 4), 'abc');
  t.equal(passed([], 4), '');
});

t.test('of more than fits the middle is left out, and counted', async (t) => {
  t.equal(passed('abcdefghij'.split(''), 4), 'ab[6]ij');
  t.equal(passed(['a', 'b', 'long piece', 'x'], 2), 'a[2]x');
  t.equal(passed(['a', 'long piece'], 2), 'along piece', 'one piece may go over it');
  const many = Array.from({ length: 100_000 }, (_, index) => `${index};`);
  t.equal(passed(many, 40), '0;1;2;3;4;5;6;7;8;9;[99987]99997;99998;99999;');
});
