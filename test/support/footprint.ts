/**
 * What a process has open and how many threads it has, by kind, so that a test can say that nothing is left of what it did.
 *
 * A worker thread of Node is an event loop, with an epoll, an eventfd and a pipe of its own. It stays for the next session, so threads
 * are counted by their loops, and pipes and threads of the system are those that are no loop's.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Footprint {
  /** Paths of open files and directories. */
  readonly files: readonly string[];
  /** Event loops: one a thread of JavaScript, and one or two of the runtime's own. */
  readonly loops: number;
  /** Ends of pipes. */
  readonly pipes: number;
  readonly sockets: number;
  /** Files and directories that are watched for changes. */
  readonly watches: number;
  /** Of the system. */
  readonly threads: number;
}

/** `undefined` for a process that has ended. */
export function footprint(pid: number): Footprint | undefined {
  try {
    const fds = readdirSync(`/proc/${pid}/fd`);
    const links = fds.map((fd) => linkOf(pid, fd));
    const count = (kind: string): number => links.filter((link) => link.startsWith(kind)).length;
    const loops = count('anon_inode:[eventpoll]');
    return {
      files: links.filter((link) => link.startsWith('/') && !link.startsWith('/dev/')),
      loops,
      pipes: count('pipe:') - 2 * loops,
      sockets: count('socket:'),
      watches: fds.reduce((sum, fd, index) => sum + (links[index] === 'anon_inode:inotify' ? watchesOf(pid, fd) : 0), 0),
      threads: Number(/Threads:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) - loops,
    };
  } catch {
    return undefined;
  }
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return ''; // Closed while we looked.
  }
}

/** A loop keeps its descriptor of inotify for good; what is watched through it is what counts. */
function watchesOf(pid: number, fd: string): number {
  try {
    return readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8').match(/^inotify wd:/gm)?.length ?? 0;
  } catch {
    return 0; // Closed while we looked.
  }
}

/** The environments of a process's children, of their children and so on, by pid; those that were seen are not read again. */
export class ChildWatch {
  readonly environments = new Map<number, Buffer>();
  readonly #pid: number;
  readonly #startsItself: boolean;

  /** @param startsItself it is a supervisor: what runs its own program is a server, and has what it has */
  constructor(pid: number, startsItself = false) {
    this.#pid = pid;
    this.#startsItself = startsItself;
  }

  look(): void {
    const waiting = childrenOf(this.#pid);
    for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
      waiting.push(...childrenOf(pid));
      // Between fork and exec it still has the environment of its parent.
      if (this.environments.has(pid) || isSameProgram(pid, this.#pid, this.#startsItself)) continue;
      try {
        this.environments.set(pid, readFileSync(`/proc/${pid}/environ`));
      } catch {
        // It ended meanwhile.
      }
    }
  }
}

/** Of a process, whichever of its threads has started them. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim();
      return children === '' ? [] : children.split(' ').map(Number);
    });
  } catch {
    return []; // It ended meanwhile.
  }
}

/** @param loosely by the program and its script alone */
function isSameProgram(pid: number, parent: number, loosely: boolean): boolean {
  const [one, other] = [pid, parent].map((of) => commandLine(of));
  if (one === undefined || other === undefined) return true;
  return loosely ? one.slice(0, 2).join() === other.slice(0, 2).join() : one.join() === other.join();
}

function commandLine(pid: number): string[] | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    // That of a process which was killed, and waits to be asked how it ended, is empty.
    return line === '' ? undefined : line.split('\0');
  } catch {
    return undefined; // It ended meanwhile.
  }
}
