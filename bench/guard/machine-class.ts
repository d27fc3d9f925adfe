/** Machines whose ratios may be compared: as many cores of the same processor, and the same major version of Node. */
import type { Machine } from '../machine.ts';

export type MachineKind = Pick<Machine, 'cores' | 'cpu' | 'node'>;

/** Name of the class, as files of results have it: `2-cores-node20-intel-xeon`. */
export function machineClass({ cores, cpu, node }: MachineKind): string {
  const model = cpu
    .toLowerCase()
    .replaceAll(/\((?:r|tm)\)|\bcpu\b|\bprocessor\b|@.*$/g, ' ')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  return `${cores}-cores-node${nodeMajor(node)}-${model}`;
}

/** For a person: `2 cores of Intel(R) Xeon(R) Processor, node 20`. */
export function machineClassText({ cores, cpu, node }: MachineKind): string {
  return `${cores} cores of ${cpu}, node ${nodeMajor(node)}`;
}

function nodeMajor(version: string): string {
  return version.replace(/^v/, '').split('.')[0] ?? '';
}
