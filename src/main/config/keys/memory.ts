/** Memory: part of `[limits]`. */
import type { KeySpec } from '../key-spec.ts';
import { count } from '../value-types.ts';

export const memoryKeys = {
  max_session_mb: {
    section: 'limits',
    type: count(1, 1_024),
    default: 128,
    doc: 'What one session may hold of its conversation, answer and results, in MB. A turn that comes over it ends with `SESSION_MEMORY`.',
  },
  max_thread_mb: {
    section: 'limits',
    type: count(64, 65_536),
    default: undefined,
    defaultText: '1024; 4096 when shared',
    doc: 'Heap and buffers of one session thread, in MB. A thread over it loses its largest session; where nobody on it is large, it is ended.',
  },
  max_rss_mb: {
    section: 'limits',
    type: count(128, 16 * 1024 * 1024),
    default: undefined,
    defaultText: '80 % of the memory that the process may use',
    doc: 'Resident memory of the process, in MB. Over it the turn of the largest session is ended with `SESSION_MEMORY`, and one more each time that does not help.',
  },
} as const satisfies Record<string, KeySpec>;
