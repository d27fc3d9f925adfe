/**
 * How a supervisor tells the server that it runs under it: which descriptor is the protocol, and how often it was started
 * before.
 */
export const supervisedVariable = 'DSH_ACP_SUPERVISED';

/** The exit code of a server under a supervisor that ended as it should: a stray `exit(0)` is none of those. */
export const orderlyExit = 86;

/** What a supervisor adds to the `_meta` of a request under this name, a server below one believes. No client's word for it is passed on. */
export const supervisorMeta = 'dsh-acp/supervisor';

export interface Supervised {
  readonly fd: number;
  readonly restarts: number;
  /** What every child of the server carries in its environment, so that none outlives it. */
  readonly mark: string;
}

/** The reverse of {@link takeSupervised}. */
export function supervisedWord({ fd, restarts, mark }: Supervised): string {
  return `${fd}:${restarts}:${mark}`;
}

/** Takes the word out of the environment, so that no child of the server believes it. */
export function takeSupervised(env: NodeJS.ProcessEnv): Supervised | undefined {
  const word = env[supervisedVariable];
  delete env[supervisedVariable];
  const match = /^(\d{1,3}):(\d{1,6}):([0-9a-f-]{36})$/.exec(word ?? '');
  return match?.[3] === undefined ? undefined : { fd: Number(match[1]), restarts: Number(match[2]), mark: match[3] };
}

/** The id that a session to be made shall have, where the supervisor gives one; a first try may have left such a session. */
export function givenSessionId(params: { readonly _meta?: Readonly<Record<string, unknown>> | null | undefined }): string | undefined {
  const given = params._meta?.[supervisorMeta] as { readonly sessionId?: unknown } | undefined;
  return typeof given?.sessionId === 'string' ? given.sessionId : undefined;
}
