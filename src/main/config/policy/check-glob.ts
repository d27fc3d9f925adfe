/** Whether a glob of a policy can match anything: what is wrong is said when it is read, not when a call comes. */
import { globPattern } from '../../../shared/glob-pattern.ts';

export const longestGlob = 500;
/** The time a match takes grows with each. */
const mostWildcards = 8;

/** What the glob would have to be; `undefined` when it is right. */
export function globFault(glob: string): string | undefined {
  if (glob === '' || glob.length > longestGlob) return `a glob of 1 to ${longestGlob} characters`;
  if (/\p{Cc}/u.test(glob)) return 'a glob without control characters';
  if (glob === '.') return undefined;
  if (glob.startsWith('~') && !glob.startsWith('~/')) return 'a glob that is relative, absolute, or begins with ~/';
  const names = glob.replace(/^(?:~\/|\.\/|\/)/, '');
  if (names === '' || names.startsWith('/') || names.includes('//')) return 'a glob without empty names';
  if (names.endsWith('/')) return 'a glob without a slash at its end (dir/** is what lies in dir)';
  // Canonical paths have neither, so such a glob would match nothing.
  if (/(?:^|[/{,])\.{1,2}(?:[/},]|$)/.test(names)) return 'a glob without the names . and ..';
  if ((names.match(/\*+|\?/g) ?? []).length > mostWildcards) return `a glob with at most ${mostWildcards} wildcards`;
  return globPattern(`./${names}`) === undefined ? 'a valid glob: *, **, ?, [a-z], [!a-z], {a,b}' : undefined;
}
