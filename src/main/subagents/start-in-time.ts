/**
 * Bounds the start of a run: an answer comes in time, also when the work itself hangs where nothing can abort it.
 */

/**
 * Fulfils or rejects with the work; `undefined` when `leftMs` passed first. `onLate` is called at once then, before work that
 * ends later can see anything else.
 */
export async function startInTime<T>(work: Promise<T>, leftMs: number, onLate: () => void): Promise<{ readonly value: T } | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    const expire = (): void => {
      onLate();
      resolve(undefined);
    };
    timer = setTimeout(expire, Math.max(0, leftMs));
  });
  try {
    return await Promise.race([work.then((value) => ({ value })), late]);
  } finally {
    clearTimeout(timer);
  }
}
