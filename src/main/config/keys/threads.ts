/** Threads: `[threads]`. */
import type { KeySpec } from '../key-spec.ts';
import { count, milliseconds } from '../value-types.ts';

export const threadsKeys = {
  max_threads: {
    section: 'threads',
    type: count(1, 1_024),
    default: undefined,
    defaultText: '64; the number of cores, at least 2, when shared',
    doc: 'Session threads at most. With `strict` this is also the hard limit of running turns.',
  },
  spare_threads: {
    section: 'threads',
    type: count(0, 64),
    default: undefined,
    defaultText: '2; 0 when shared',
    doc: 'Idle threads kept ready, so that a turn need not wait for one to start.',
  },
  park_after_ms: {
    section: 'threads',
    type: milliseconds(),
    default: 60_000,
    doc: 'An idle session leaves its thread after this long; 0 keeps it until the thread is wanted.',
  },
  attach_timeout_ms: {
    section: 'threads',
    type: milliseconds(100, 600_000),
    default: 15_000,
    doc: 'To put a session on a thread, replay of its log included.',
  },
  stuck_thread_ms: {
    section: 'threads',
    type: milliseconds(500, 600_000),
    default: 5_000,
    doc: 'A thread with running turns that shows no sign of life for this long is ended; its sessions are revived from their logs.',
  },
} as const satisfies Record<string, KeySpec>;
