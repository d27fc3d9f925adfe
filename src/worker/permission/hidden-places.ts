/**
 * Where a call leads that its card does not show: links followed. Whoever is asked must see the place itself, not only the
 * name that the model gave it.
 */
import type { ResolvedAccess } from '../../shared/permission/mode-policy.ts';
import type { ToolCallView } from '../../shared/render-intents.ts';

const mostShown = 8;

/** A sentence, or `undefined` when the card shows every place. */
export function hiddenPlaces(view: ToolCallView, access: ResolvedAccess): string | undefined {
  switch (access.kind) {
    case 'read':
    case 'write': {
      const shown = shownPaths(view);
      const hidden = access.paths.flatMap(({ canonical }) => (canonical === undefined || shown.has(canonical) ? [] : [canonical]));
      if (hidden.length === 0) return undefined;
      const more = hidden.length > mostShown ? ` and ${hidden.length - mostShown} more` : '';
      return `It leads to ${hidden.slice(0, mostShown).map(quoted).join(', ')}${more}.`;
    }
    case 'execute': {
      const { cwd, canonicalCwd } = access;
      return canonicalCwd === undefined || canonicalCwd === cwd ? undefined : `It runs in ${quoted(canonicalCwd)}.`;
    }
    case 'delegate':
    case 'mcp':
    case 'none':
    default:
      return undefined;
  }
}

function shownPaths(view: ToolCallView): ReadonlySet<string> {
  const locations = view.card === 'terminal' ? [] : (view.locations ?? []);
  return new Set([...locations, ...(view.card === 'diff' ? view.diffs : [])].map(({ path }) => path));
}

/** A file's name may hold anything, a line break too. */
function quoted(path: string): string {
  return JSON.stringify(path);
}
