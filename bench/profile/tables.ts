/** A profile as text: where the time was spent, by function, file and package. */
import { type CallNode, placeOf, type Share, sumUp } from './call-tree.ts';

const most = { functions: 40, files: 25, owners: 20 };

export function profileTables(title: string, tree: CallNode): string {
  const byFunction = sumUp(tree, placeOf);
  const inclusive = byFunction.toSorted((a, b) => b.total - a.total || (a.what < b.what ? -1 : 1));
  const byFile = sumUp(tree, ({ file, name }) => (file === '' ? name : file));
  const byOwner = sumUp(tree, ({ owner, name }) => (owner === 'V8' ? `V8 ${name}` : owner === 'native' ? 'native code' : owner));
  return [
    `${title}\n${tree.total} samples; percent of them. Self: in the function itself. Total: with all that it calls.`,
    table('Functions by self', byFunction.slice(0, most.functions), tree.total),
    table('Functions by total', inclusive.slice(0, most.functions), tree.total),
    table('Files by self', byFile.slice(0, most.files), tree.total),
    table('Packages by self', byOwner.slice(0, most.owners), tree.total),
  ].join('\n\n');
}

function table(title: string, shares: readonly Share[], all: number): string {
  const percent = (count: number): string => ((count * 100) / Math.max(1, all)).toFixed(1).padStart(6);
  return [title, '  self  total', ...shares.map(({ what, self, total }) => `${percent(self)} ${percent(total)}  ${what}`)].join('\n');
}
