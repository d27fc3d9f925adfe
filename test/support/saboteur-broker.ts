/** The real broker thread, which ends when the main thread of `saboteur-main.ts` says so. */
import { BroadcastChannel } from 'node:worker_threads';
import '../../src/worker/broker/entry.ts';

/** Carries the order to end. */
const channel = new BroadcastChannel('sabotage-broker');
channel.onmessage = () => process.exit(3);
channel.unref();
