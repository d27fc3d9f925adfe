/**
 * How a supervisor tells the server that it runs under it: which descriptor is the protocol, and how often it was started
 * before.
 */
export const supervisedVariable = 'DSH_ACP_SUPERVISED';

export interface Supervised {
  readonly fd: number;
  readonly restarts: number;
}

/** Takes the word out of the environment, so that no child of the server believes it. */
export function takeSupervised(env: NodeJS.ProcessEnv): Supervised | undefined {
  const word = env[supervisedVariable];
  delete env[supervisedVariable];
  const match = /^(\d{1,3}):(\d{1,6})$/.exec(word ?? '');
  return match === null ? undefined : { fd: Number(match[1]), restarts: Number(match[2]) };
}
