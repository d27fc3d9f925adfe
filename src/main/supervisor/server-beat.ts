/** The server's signs of life for its supervisor: a byte now and then from the main thread's event loop, on a descriptor of its own, so that no slow client holds them up. */
import { Socket } from 'node:net';
import type { Beat } from '../../shared/supervised.ts';

/** Beats for as long as the process lives, and does not keep it alive. */
export function beatToSupervisor({ fd, everyMs }: Beat): void {
  const socket = new Socket({ fd, readable: false, writable: true });
  // A supervisor that is gone shows in the end of the input.
  socket.on('error', () => clearInterval(timer));
  socket.unref();
  const beat = (): void => {
    // One that does not read is stopped; it must not be waited for, nor kept waiting bytes.
    if (socket.writableLength === 0) socket.write('.');
  };
  const timer = setInterval(beat, everyMs).unref();
  beat();
}
