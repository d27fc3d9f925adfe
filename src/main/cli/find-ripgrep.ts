/** Where the ripgrep binary is. Loading its package costs 5 ms, so a server asks only when its first answer is out. */

/** Absolute path; `undefined` where no binary is installed for this platform: the search tools say so when they are used. */
export async function findRipgrep(): Promise<string | undefined> {
  try {
    const { rgPath } = await import('@vscode/ripgrep');
    return rgPath;
  } catch {
    return undefined;
  }
}
