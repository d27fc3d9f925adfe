/**
 * Puts a broker behind ports: one per caller, handed over by main.
 */
import { type MessagePort, workerData } from 'node:worker_threads';
import type { BrokerApi, BrokerConnect, BrokerNotice, BrokerThreadData, RunRequest } from '../../shared/broker-protocol.ts';
import { expose, portEndpoint } from '../../shared/comlink.ts';
import { writeSandboxState } from '../../shared/sandbox-slot.ts';
import { SpawnGate } from '../../shared/spawn-gate.ts';
import { Broker } from './broker.ts';

/** Serves until the thread ends. `parent` takes {@link BrokerConnect} and gives {@link BrokerNotice}. */
export function serveBroker(parent: MessagePort | null): void {
  if (parent === null) throw new Error('the broker is a thread: it cannot be started as a program');
  const { mark, withheldVariables, subagents, agentInfo, sandbox, sandboxSlot, spawnGate, ownDirectories } = workerData as BrokerThreadData;
  const tell = (notice: BrokerNotice): void => parent.postMessage(notice);
  const broker = new Broker({
    mark,
    withheldVariables,
    subagents,
    agentInfo,
    sandbox,
    ownDirectories,
    spawnGate: new SpawnGate(spawnGate),
    ambient: process.env,
    onGroupStarted: (pgid, owner) => tell({ kind: 'group-started', pgid, owner }),
    onGroupEnded: (pgid) => tell({ kind: 'group-ended', pgid }),
  });
  void broker.sandboxState().then((state) => {
    writeSandboxState(sandboxSlot, state);
    tell({ kind: 'sandbox-found', state });
  });
  parent.on('message', (message: BrokerConnect) => serveCaller(broker, message.port));
}

/** A caller that is gone (its thread died) reads no results: its runs are ended. Its tasks go with their owner. */
function serveCaller(broker: Broker, port: MessagePort): void {
  const open = new Set<RunRequest>();
  /** Owners of subagent runs, by run. */
  const subagents = new Map<string, string>();
  const api: BrokerApi = {
    run: async (request) => {
      open.add(request);
      try {
        return await broker.run(request);
      } finally {
        open.delete(request);
      }
    },
    readRun: (owner, runId, waitMs) => broker.readRun(owner, runId, waitMs),
    cancelRun: (owner, runId) => broker.cancelRun(owner, runId),
    startBackground: (spec) => broker.startBackground(spec),
    readBackground: (owner, taskId, waitMs) => broker.readBackground(owner, taskId, waitMs),
    killBackground: (owner, taskId) => broker.killBackground(owner, taskId),
    countBackground: (owner) => broker.countBackground(owner),
    canCutNetwork: () => broker.canCutNetwork(),
    sandboxState: () => broker.sandboxState(),
    startSubagent: async (request) => {
      subagents.set(request.runId, request.owner);
      const started = await broker.startSubagent(request);
      if (!started.ok) subagents.delete(request.runId);
      return started;
    },
    awaitSubagent: (owner, runId, seq, waitMs) => broker.awaitSubagent(owner, runId, seq, waitMs),
    cancelSubagent: (owner, runId) => broker.cancelSubagent(owner, runId),
    answerSubagent: (owner, runId, questionId, allow) => broker.answerSubagent(owner, runId, questionId, allow),
    disposeSubagent: async (owner, runId) => {
      await broker.disposeSubagent(owner, runId);
      subagents.delete(runId);
    },
    countSubagents: (owner) => broker.countSubagents(owner),
    openMcp: (request) => broker.openMcp(request),
    awaitMcp: (owner, seq, waitMs) => broker.awaitMcp(owner, seq, waitMs),
    callMcpTool: (request) => broker.callMcpTool(request),
    cancelMcpCall: (owner, callId) => broker.cancelMcpCall(owner, callId),
    adopt: (owner, parent) => broker.adopt(owner, parent),
    releaseOwner: (owner) => broker.releaseOwner(owner),
    parkOwner: (owner) => broker.parkOwner(owner),
    shutdown: () => broker.shutdown(),
  };
  port.on('close', () => {
    for (const { owner, runId } of open) void broker.cancelRun(owner, runId);
    for (const [runId, owner] of subagents) void broker.abandonSubagent(owner, runId);
  });
  expose(api, portEndpoint(port));
}
