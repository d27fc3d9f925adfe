/** What this thread's isolate holds: its heap, and what lies beside it (Buffers, ArrayBuffers, external strings). */
import { getHeapStatistics } from 'node:v8';

/**
 * In KB. Costs a microsecond. Shared memory (`SharedArrayBuffer`, WebAssembly memory) and what native code allocates by itself are
 * not in it: these show in the process's resident memory alone.
 */
export function threadMemoryKb(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return Math.min(2 ** 31 - 1, Math.round((heap + external) / 1024));
}
