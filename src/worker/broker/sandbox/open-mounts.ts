/**
 * From planned mounts to arguments. What is bound is opened first, and looked at once more: whether it is what the plan means, and not a link that was
 * put in its place. Bubblewrap is given the open descriptor, so nothing can be swapped behind the look either.
 */
import type { FileHandle } from 'node:fs/promises';
import { openPlace } from './directory-handle.ts';
import type { Mount } from './mounts.ts';

export interface OpenMounts {
  readonly args: readonly string[];
  /** To be inherited, the first one as number {@link firstDescriptor}. */
  readonly descriptors: readonly number[];
  /** Once the program has been started, or will not be. Never rejects. */
  readonly close: () => Promise<void>;
}

/** Behind stdin, stdout and stderr. */
const firstDescriptor = 3;

/**
 * @param byDescriptor whether the program takes open descriptors; else it is given the path that was looked at
 * @throws PlaceMoved; the system's error where no more can be opened
 */
export async function openMounts(mounts: readonly Mount[], byDescriptor: boolean): Promise<OpenMounts> {
  const handles: FileHandle[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(handles.splice(0).map((handle) => handle.close().catch(() => undefined)));
  };
  try {
    const opened = await settled(mounts.map((mount) => openSource(mount)));
    handles.push(...opened.flatMap((one) => (one.ok && one.value !== undefined ? [one.value] : [])));
    for (const one of opened) if (!one.ok) throw one.error;
    const args = mounts.flatMap((mount, index) => {
      const one = opened[index];
      return argumentsOf(mount, one?.ok === true ? one.value : undefined, byDescriptor ? handles : undefined);
    });
    const descriptors = byDescriptor ? handles.map((handle) => handle.fd) : [];
    if (!byDescriptor) await close();
    return { args, descriptors, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openSource(mount: Mount): Promise<FileHandle | undefined> {
  return mount.kind === 'bind' || mount.kind === 'ro-bind' ? await openPlace(mount.from ?? mount.path) : undefined;
}

function argumentsOf(mount: Mount, handle: FileHandle | undefined, handles: readonly FileHandle[] | undefined): string[] {
  switch (mount.kind) {
    case 'bind':
    case 'ro-bind':
      // Gone since it was looked for: there is nothing to show, and nothing to hold.
      if (handle === undefined) return [];
      if (handles === undefined) return [`--${mount.kind}`, mount.from ?? mount.path, mount.path];
      return [`--${mount.kind}-fd`, String(firstDescriptor + handles.indexOf(handle)), mount.path];
    case 'blank':
      return ['--ro-bind', '/dev/null', mount.path];
    case 'tmpfs':
    case 'remount-ro':
    default:
      return [`--${mount.kind}`, mount.path];
  }
}

type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** All of them, also where some fail: what was opened must be closed. */
async function settled<T>(promises: readonly Promise<T>[]): Promise<Settled<T>[]> {
  return await Promise.all(
    promises.map((promise) =>
      promise.then(
        (value): Settled<T> => ({ ok: true, value }),
        (error: unknown): Settled<T> => ({ ok: false, error }),
      ),
    ),
  );
}
