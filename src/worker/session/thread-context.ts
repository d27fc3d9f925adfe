/**
 * What all sessions of one thread share: the outbox to main, the calls to main, the broker, and the heartbeat.
 */
import { MessageChannel, type MessagePort, threadId } from 'node:worker_threads';
import type { BrokerApi } from '../../shared/broker-protocol.ts';
import { portEndpoint, type Remote, wrap } from '../../shared/comlink.ts';
import type { CreditReturn, MainServices, ThreadPorts } from '../../shared/thread-protocol.ts';
import { ThreadOutbox } from '../outbox/thread-outbox.ts';
import { Heartbeat } from './heartbeat.ts';

export interface ThreadContext {
  readonly threadId: number;
  readonly outbox: ThreadOutbox;
  readonly main: Remote<MainServices>;
  readonly broker: Remote<BrokerApi>;
  readonly heartbeat: Heartbeat;
  /** Ids of the sessions on this thread. */
  readonly sessionIds: Set<string>;
  /** Main's ends of the ports, handed over once, with the first session. */
  takePorts(): { readonly ports: ThreadPorts; readonly transfer: MessagePort[] } | undefined;
}

let current: ThreadContext | undefined;

/** The context of this thread, made at the first call. */
export function threadContext(): ThreadContext {
  current ??= createThreadContext(threadId);
  return current;
}

/** Makes a context; exported so that tests can host sessions in their own thread. */
export function createThreadContext(id: number): ThreadContext {
  const data = new MessageChannel();
  const control = new MessageChannel();
  const broker = new MessageChannel();
  const heartbeat = new Heartbeat();
  const outbox = new ThreadOutbox(data.port1);
  data.port1.on('message', (message: CreditReturn) => outbox.returnCredit(message.credit));
  let ports: ThreadPorts | undefined = { data: data.port2, control: control.port2, broker: broker.port2, heartbeat: heartbeat.buffer };
  return {
    threadId: id,
    outbox,
    main: wrap<MainServices>(portEndpoint(control.port1)),
    broker: wrap<BrokerApi>(portEndpoint(broker.port1)),
    heartbeat,
    sessionIds: new Set(),
    takePorts: () => {
      const taken = ports;
      ports = undefined;
      return taken === undefined ? undefined : { ports: taken, transfer: [taken.data, taken.control, taken.broker] };
    },
  };
}
