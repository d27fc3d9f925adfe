/**
 * What in a repository's own directory would have git run something, or take its settings from elsewhere. Looked at once a command is over, in
 * repositories and parts of repositories that were not there before it.
 */
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { DirectoryHandle } from './directory-handle.ts';
import { harmlessConfig } from './harmless-git-config.ts';
import { quickLook } from './quick-look.ts';

export interface GitOffence {
  /** Below the directory. */
  readonly piece: string;
  /** What may stay of a configuration, or stands in its place. */
  readonly harmless?: string;
}

const ofItself = ['hooks', 'config', 'config.worktree', 'commondir'];
const ofWorkTree = ['commondir', 'config.worktree'];
const longestConfig = 64 * 1024;
const mostNames = 256;
/** Names of submodules may hold slashes. */
const deepestModule = 3;

/** How much is looked at for one repository. */
interface Budget {
  directories: number;
}

/** The parts that matter, as far as they are there: paths below the directory, and where a part is a link, what it says. Never rejects. */
export async function gitPieces(directory: string, budget: Budget = { directories: 256 }): Promise<Map<string, string>> {
  const names = await namesIn(directory, budget);
  const own = ofItself.filter((name) => names.includes(name));
  const [modules, workTrees] = await Promise.all([
    names.includes('modules') ? piecesOfModules(directory, 'modules', 1, budget) : [],
    names.includes('worktrees') ? piecesOfWorkTrees(directory, budget) : [],
  ]);
  const pieces = [...own, ...modules, ...workTrees];
  const links = await Promise.all(pieces.map((piece) => readlink(join(directory, piece)).catch(() => '')));
  return new Map(pieces.map((piece, index) => [piece, links[index] ?? '']));
}

async function piecesOfModules(directory: string, below: string, depth: number, budget: Budget): Promise<string[]> {
  const names = await namesIn(join(directory, below), budget);
  const found = await Promise.all(
    names.map(async (name) => {
      const path = `${below}/${name}`;
      const entry = await quickLook(join(directory, path));
      if (entry?.isSymbolicLink() === true) return [path];
      if (entry?.isDirectory() !== true) return [];
      const inner = await namesIn(join(directory, path), budget);
      if (!inner.includes('HEAD')) return depth < deepestModule ? await piecesOfModules(directory, path, depth + 1, budget) : [];
      const own = ofItself.filter((piece) => inner.includes(piece)).map((piece) => `${path}/${piece}`);
      return inner.includes('modules') && depth < deepestModule
        ? [...own, ...(await piecesOfModules(directory, `${path}/modules`, depth + 1, budget))]
        : own;
    }),
  );
  return found.flat();
}

async function piecesOfWorkTrees(directory: string, budget: Budget): Promise<string[]> {
  const names = await namesIn(join(directory, 'worktrees'), budget);
  const found = await Promise.all(
    names.map(async (name) => {
      const present = await namesIn(join(directory, 'worktrees', name), budget);
      return ofWorkTree.filter((piece) => present.includes(piece)).map((piece) => `worktrees/${name}/${piece}`);
    }),
  );
  return found.flat();
}

async function namesIn(directory: string, budget: Budget): Promise<string[]> {
  if (budget.directories <= 0) return [];
  budget.directories -= 1;
  return (await readdir(directory).catch(() => [])).slice(0, mostNames);
}

/** Whether one part is what git itself would have made, and nothing more. */
export async function gitOffence(directory: DirectoryHandle, piece: string): Promise<readonly GitOffence[]> {
  const names = piece.split('/');
  const last = names.pop() ?? '';
  const parent = await directory.below(names);
  // It is gone, or a link now stands in its way.
  if (parent === undefined) return names.length === 0 ? [] : await gitOffence(directory, names.join('/'));
  try {
    const entry = await parent.look(last);
    if (entry === undefined) return [];
    if (entry.isSymbolicLink()) return [{ piece }];
    switch (last) {
      case 'hooks':
        return (await isSamplesOnly(parent)) ? [] : [{ piece }];
      case 'config':
      case 'config.worktree':
        return await configOffence(parent, piece, last);
      case 'commondir':
        return await commonOffence(parent, piece);
      default:
        return [];
    }
  } finally {
    await parent.close();
  }
}

async function isSamplesOnly(parent: DirectoryHandle): Promise<boolean> {
  const hooks = await parent.child('hooks');
  if (hooks === undefined) return false;
  try {
    return (await hooks.names()).every((name) => name.endsWith('.sample'));
  } catch {
    return false;
  } finally {
    await hooks.close();
  }
}

/** Only a linked work tree has one, and its repository is always at the same place. */
async function commonOffence(parent: DirectoryHandle, piece: string): Promise<readonly GitOffence[]> {
  if (!piece.startsWith('worktrees/')) return [{ piece }];
  return (await parent.read('commondir', longestConfig))?.trim() === '../..' ? [] : [{ piece, harmless: '../..\n' }];
}

async function configOffence(parent: DirectoryHandle, piece: string, name: string): Promise<readonly GitOffence[]> {
  const text = await parent.read(name, longestConfig);
  if (text === undefined) return [{ piece }];
  const { text: harmless, isHarmless } = harmlessConfig(text);
  return isHarmless ? [] : [{ piece, harmless }];
}
