/**
 * A glob held against paths with `/`: for policies, and for the walk that stands in when ripgrep is missing. Pure.
 *
 * Patterns and paths may come from a model or a client, so the time of a match grows with the product of their lengths and
 * no faster: all ways through the pattern are followed at once, where a regular expression would try one after the other.
 */
const maxAlternatives = 64;

export interface GlobPattern {
  /** Whether the whole path matches; relative, without a leading slash. */
  test(path: string): boolean;
}

interface Edge {
  /** Takes one character; without it the edge is free. */
  readonly takes?: (character: string) => boolean;
  readonly to: number;
}

const pieces = /^(?:\*\*\/|\*+|\?|\[[!^]?\]?[^\]/]*\]|\\[^]|[^])/u;
const anything = (): boolean => true;
const inName = (character: string): boolean => character !== '/';
const slash = (character: string): boolean => character === '/';

/**
 * `*`, `**`, `?`, `[a-z]`, `[!a-z]`, `{a,b}` and `\x`. A pattern without a slash matches the last name at any depth.
 *
 * @returns `undefined` when the pattern is not a valid glob
 */
export function globPattern(pattern: string): GlobPattern | undefined {
  const graph = new Graph();
  if (!pattern.includes('/')) graph.addDirectories();
  try {
    return addGlob(graph, pattern.replace(/^\.?\//, '')) ? graph : undefined;
  } catch {
    // A range such as [z-a].
    return undefined;
  }
}

/** False for braces that are not closed, or hold too much. */
function addGlob(graph: Graph, glob: string): boolean {
  let alternatives = 0;
  for (let at = 0; at < glob.length; ) {
    const piece = pieces.exec(glob.slice(at))?.[0] ?? '';
    at += piece.length;
    if (piece === '**/') graph.addDirectories();
    else if (piece.startsWith('*')) graph.addAny(piece.length > 1 ? anything : inName);
    else if (piece === '?') graph.addOne(inName);
    else if (piece.startsWith('[') && piece.length > 1) graph.addOne(characterClass(piece));
    else if (piece === '{') graph.openGroup();
    else if (piece === '}' && graph.depth > 0) graph.closeGroup();
    else if (piece === ',' && graph.depth > 0) {
      alternatives += 1;
      graph.nextAlternative();
    } else {
      const literal = piece.startsWith('\\') && piece.length > 1 ? piece.slice(1) : piece;
      graph.addOne((character) => character === literal);
    }
  }
  return graph.depth === 0 && alternatives <= maxAlternatives;
}

/** States in the order in which they were added; what is added last is where a match ends. */
class Graph implements GlobPattern {
  readonly #edges: Edge[][] = [[]];
  readonly #groups: { readonly start: number; readonly ends: number[] }[] = [];
  #at = 0;

  get depth(): number {
    return this.#groups.length;
  }

  addOne(takes: (character: string) => boolean): void {
    const to = this.#add();
    this.#edges[this.#at]?.push({ takes, to });
    this.#at = to;
  }

  addAny(takes: (character: string) => boolean): void {
    const loop = this.#add();
    this.#edges[loop]?.push({ takes, to: loop });
    this.#edges[this.#at]?.push({ to: loop });
    this.#at = loop;
  }

  /** Any names with a slash behind each, none too. */
  addDirectories(): void {
    const from = this.#at;
    this.addAny(anything);
    this.addOne(slash);
    this.#edges[from]?.push({ to: this.#at });
  }

  openGroup(): void {
    this.#groups.push({ start: this.#at, ends: [] });
    this.#begin(this.#at);
  }

  nextAlternative(): void {
    const group = this.#groups.at(-1);
    group?.ends.push(this.#at);
    this.#begin(group?.start ?? 0);
  }

  closeGroup(): void {
    const ends = [...(this.#groups.pop()?.ends ?? []), this.#at];
    const to = this.#add();
    for (const end of ends) this.#edges[end]?.push({ to });
    this.#at = to;
  }

  test(path: string): boolean {
    let states = this.#reached([0]);
    for (const character of path) {
      const next: number[] = [];
      for (const state of states) {
        for (const { takes, to } of this.#edges[state] ?? []) if (takes?.(character) === true) next.push(to);
      }
      if (next.length === 0) return false;
      states = this.#reached(next);
    }
    return states.has(this.#at);
  }

  /** With all that can be reached from there for free. */
  #reached(states: readonly number[]): ReadonlySet<number> {
    const reached = new Set(states);
    // A set that grows while it is walked is walked to its end.
    for (const state of reached) {
      for (const { takes, to } of this.#edges[state] ?? []) if (takes === undefined) reached.add(to);
    }
    return reached;
  }

  #begin(from: number): void {
    const begin = this.#add();
    this.#edges[from]?.push({ to: begin });
    this.#at = begin;
  }

  #add(): number {
    return this.#edges.push([]) - 1;
  }
}

function characterClass(piece: string): (character: string) => boolean {
  const negated = piece[1] === '!' || piece[1] === '^';
  const members = piece.slice(negated ? 2 : 1, -1).replace(/[\\\]^[&~|]/g, '\\$&');
  const expression = new RegExp(negated ? `^(?!/)[^${members}]$` : `^[${members}]$`, 'u');
  return (character) => expression.test(character);
}
