/** Lasting answers in memory, for gates whose files are not what a test is about. */
import type { LastingGrants } from '../../../../src/worker/permission/workspace-grants.ts';

export interface MemoryGrants extends LastingGrants {
  readonly allowed: Set<string>;
  readonly rejected: Set<string>;
  /** `false` refuses to keep anything, as a full disk does. */
  keeps: boolean;
}

export function memoryGrants(): MemoryGrants {
  const grants: MemoryGrants = {
    allowed: new Set(),
    rejected: new Set(),
    keeps: true,
    current: () => grants,
    add: async (answer, key) => {
      if (!grants.keeps) return false;
      grants[answer === 'allow' ? 'allowed' : 'rejected'].add(key);
      return true;
    },
  };
  return grants;
}
