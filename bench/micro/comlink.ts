/** What a call of the control plane costs, through the endpoint that all threads use: in one thread, and to another one and back. */
import { isMainThread, MessageChannel, parentPort, Worker } from 'node:worker_threads';
import { expose, portEndpoint, type Remote, wrap } from '../../src/shared/comlink.ts';
import { measureAll } from './measured.ts';

interface Api {
  nothing(): void;
  echo(value: unknown): unknown;
}

const api: Api = { nothing: () => undefined, echo: (value) => value };
const count = 200;
/** As a prompt has them. */
const prompt = [{ type: 'text', text: 'a few words of a prompt '.repeat(20) }];

async function oneAfterAnother(remote: Remote<Api>): Promise<void> {
  for (let i = 0; i < count; i += 1) await remote.nothing();
}

async function measure(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  expose(api, portEndpoint(port1));
  const here = wrap<Api>(portEndpoint(port2));
  const thread = new MessageChannel();
  const worker = new Worker(new URL(import.meta.url));
  worker.postMessage(thread.port1, [thread.port1]);
  const there = wrap<Api>(portEndpoint(thread.port2));
  await measureAll('comlink', [
    { what: 'a call within a thread', unit: 'call', count, run: () => oneAfterAnother(here) },
    { what: 'a call to another thread, one after another', unit: 'call', count, run: () => oneAfterAnother(there) },
    {
      what: `${count} calls to another thread at once`,
      unit: 'call',
      count,
      run: () => Promise.all(Array.from({ length: count }, () => there.nothing())),
    },
    {
      what: `${count} calls to another thread at once, with a prompt there and back`,
      unit: 'call',
      count,
      run: () => Promise.all(Array.from({ length: count }, () => there.echo(prompt))),
    },
  ]);
  port1.close();
  thread.port2.close();
  await worker.terminate();
}

if (isMainThread) await measure();
else parentPort?.once('message', (port) => expose(api, portEndpoint(port)));
