/**
 * How a glob becomes ripgrep's arguments without undoing ignore files.
 *
 * `-g` whitelists what it matches, ignored or not. A pattern that matches directories, such as `src/**`, would so bring back
 * `node_modules`; when its last part is only stars, searching the directory itself says the same and keeps ignore files in force.
 */
export interface GlobFilter {
  /** The directory below the root to search instead of the root. */
  readonly below?: string;
  /** Options that filter; empty when everything not ignored is wanted. */
  readonly options: readonly string[];
}

const special = /[*?[\]{}!\\]/;

/** @param root canonical absolute directory; a pattern given as an absolute path below it is made relative */
export function globFilter(pattern: string, root: string): GlobFilter {
  const prefix = root.endsWith('/') ? root : `${root}/`;
  const own = (pattern.startsWith(prefix) ? pattern.slice(prefix.length) : pattern).replace(/^(?:\.\/)+/, '');
  const everything = /^(?:(.*)\/)?\*\*(?:\/\*)?$/.exec(own) ?? (own === '*' ? [own, undefined] : null);
  if (everything !== null) {
    const directory = everything[1];
    if (directory === undefined || directory === '' || directory === '**') {
      return { options: [] };
    }
    if (!special.test(directory) && !directory.split('/').includes('..')) {
      return { below: directory.replace(/^\/+/, ''), options: [] };
    }
  }
  return { options: ['-g', own] };
}
