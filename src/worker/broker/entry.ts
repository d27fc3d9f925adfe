/** The broker thread's first module. Has no logic of its own. */
import { parentPort } from 'node:worker_threads';
import { serveBroker } from './serve-broker.ts';

serveBroker(parentPort);
