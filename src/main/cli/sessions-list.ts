/** `dsh-acp sessions list`: the stored sessions, the newest first, also those that a server has open. */
import { isLockHeld } from '../../shared/log/session-lock.ts';
import { listSessions, type SessionSummary } from '../../shared/log/list-sessions.ts';
import { sessionPaths } from '../../shared/log/session-paths.ts';
import { visibleLine } from '../run/view/visible-text.ts';
import type { Paint } from '../transcript/paint.ts';

export interface ListPlan {
  readonly stateDir: string;
  /** Canonical; `undefined` for all. */
  readonly cwd: string | undefined;
  readonly limit: number;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly home: string;
}

interface Listed extends SessionSummary {
  /** Attached to a thread of a server now. */
  readonly open: boolean;
  readonly logPath: string;
}

const longestTitle = 80;
const longestPath = 60;

/** @throws ServerError INTERNAL when the directory cannot be read */
export async function sessionsJson(plan: ListPlan): Promise<string> {
  const { sessions } = await listed(plan);
  const rows = sessions.map(({ id, title, cwd, createdAt, updatedAt, open, logPath }) => {
    return { id, title: title ?? null, cwd, createdAt, updatedAt, open, logPath };
  });
  return `${JSON.stringify(rows, undefined, 1)}\n`;
}

/** @throws ServerError INTERNAL when the directory cannot be read */
export async function sessionsTable(plan: ListPlan, paint: Paint): Promise<string> {
  const { sessions, more, skipped } = await listed(plan);
  if (sessions.length === 0 && skipped === 0) return `There are no sessions${plan.cwd === undefined ? '' : ` of ${plan.cwd}`}.\n`;
  const rows = sessions.map(({ id, title, cwd, updatedAt, open }) => {
    const when = agoText(plan.now - Date.parse(updatedAt)).padStart(9);
    const mark = open ? paint('green', '●') : ' ';
    const place = plan.cwd === undefined ? `  ${paint('dim', pathText(cwd, plan.home))}` : '';
    return `${mark} ${paint('cyan', id)}  ${paint('dim', when)}  ${visibleLine(title ?? '(nothing was said)', longestTitle)}${place}\n`;
  });
  const notes = [
    ...(sessions.some(({ open }) => open) ? ['● a server works on it'] : []),
    ...(more ? [`these are the newest ${sessions.length}; --limit N shows more`] : []),
    ...(skipped > 0 ? [`${skipped} logs could not be read`] : []),
  ];
  return `${rows.join('')}${notes.map((note) => `${paint('dim', note)}\n`).join('')}`;
}

async function listed({ stateDir, cwd, limit }: ListPlan): Promise<{ sessions: Listed[]; more: boolean; skipped: number }> {
  const page = await listSessions(stateDir, { ...(cwd === undefined ? {} : { cwd }), pageSize: limit });
  const sessions = page.sessions.map((session) => {
    const { lock, log } = sessionPaths(stateDir, session.id);
    return { ...session, open: isLockHeld(lock), logPath: log };
  });
  return { sessions, more: page.nextCursor !== undefined, skipped: page.skipped };
}

function pathText(path: string, home: string): string {
  const short = home.length > 1 && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  // The end of a path says more than its beginning.
  return short.length <= longestPath ? visibleLine(short, longestPath) : `…${visibleLine(short.slice(1 - longestPath), longestPath)}`;
}

const units: readonly (readonly [string, number])[] = [
  ['d', 24 * 3600],
  ['h', 3600],
  ['m', 60],
];

/** `now`, `5m ago`, `3h ago`, `12d ago`. */
function agoText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  for (const [unit, size] of units) if (seconds >= size) return `${Math.floor(seconds / size)}${unit} ago`;
  return 'now';
}
