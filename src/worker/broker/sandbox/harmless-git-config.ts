/**
 * Which lines of a git configuration start nothing and send git nowhere: those that `git init`, `git clone` and `git worktree` write. A list of what is
 * allowed, line by line; whatever is not plainly one of these lines counts as dangerous. No shell text is read here, and nothing is run.
 */

const plainName = '[A-Za-z0-9][A-Za-z0-9._/-]*';
const section = new RegExp(`^\\[([a-z]+)(?: "(${plainName})")?\\]$`, 'i');
const entry = /^([a-z][a-z0-9-]*) ?= ?(.*)$/i;
const bool = '(?:true|false)';
const word = '[A-Za-z0-9._-]+';

/** No transport helper, and nothing that ssh would take for an option. */
const address =
  '(?:(?:https?|git|ssh|file)://[A-Za-z0-9/][^\\s"\\\\]*|[A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^\\s"\\\\:-][^\\s"\\\\]*|/[^\\s"\\\\]*)';

/** By `section.key` in lower case: what the value may be. */
const harmless: Readonly<Record<string, RegExp>> = patterns({
  'core.repositoryformatversion': '[01]',
  'core.filemode': bool,
  'core.bare': bool,
  'core.logallrefupdates': `(?:${bool}|always)`,
  'core.ignorecase': bool,
  'core.precomposeunicode': bool,
  'core.symlinks': bool,
  'core.autocrlf': `(?:${bool}|input)`,
  'core.eol': '(?:lf|crlf|native)',
  'extensions.objectformat': word,
  'extensions.refstorage': word,
  'extensions.partialclone': word,
  'remote.fetch': '\\+?refs/[A-Za-z0-9*._/-]+:refs/[A-Za-z0-9*._/-]+',
  'remote.url': address,
  'remote.promisor': bool,
  'remote.partialclonefilter': '[a-z0-9:=]+',
  'remote.tagopt': '--(?:no-)?tags',
  'branch.remote': word,
  'branch.merge': 'refs/[A-Za-z0-9._/-]+',
  'user.name': '[^"\\\\;#]+',
  'user.email': '[^\\s"\\\\;#]+',
  'submodule.url': address,
  'submodule.active': `(?:${bool}|\\.)`,
  'lfs.repositoryformatversion': '0',
  'gc.auto': '[0-9]+',
});

/** The text without the other lines, and whether there were any. */
export function harmlessConfig(text: string): { readonly text: string; readonly isHarmless: boolean } {
  const kept: string[] = [];
  let isHarmless = true;
  let current: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const plain = line.trim();
    const head = section.exec(plain);
    if (head !== null) current = head[1]?.toLowerCase();
    const isKept = plain === '' || head !== null || isHarmlessEntry(current, plain);
    if (isKept) kept.push(line);
    else isHarmless = false;
  }
  return { text: kept.join('\n'), isHarmless };
}

function isHarmlessEntry(current: string | undefined, line: string): boolean {
  const [, key = '', value = ''] = entry.exec(line) ?? [];
  return current !== undefined && harmless[`${current}.${key.toLowerCase()}`]?.test(value) === true;
}

function patterns(sources: Readonly<Record<string, string>>): Record<string, RegExp> {
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, new RegExp(`^${source}$`)]));
}
