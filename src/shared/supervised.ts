/**
 * How a supervisor tells the server that it runs under it: which descriptor is the protocol, and how often it was started
 * before.
 */
export const supervisedVariable = 'DSH_ACP_SUPERVISED';

/** The exit code of a server under a supervisor that ended as it should: a stray `exit(0)` is none of those. */
export const orderlyExit = 86;

/** What a supervisor adds to the `_meta` of a request under this name, a server below one believes. No client's word for it is passed on. */
export const supervisorMeta = 'dsh-acp/supervisor';

/** How the server gives its supervisor signs of life. */
export interface Beat {
  readonly fd: number;
  readonly everyMs: number;
}

export interface Supervised {
  readonly fd: number;
  /** Absent where nobody looks for them. */
  readonly beat?: Beat | undefined;
  readonly restarts: number;
  /** What every child of the server carries in its environment, so that none outlives it. */
  readonly mark: string;
}

/** The reverse of {@link takeSupervised}. */
export function supervisedWord({ fd, beat, restarts, mark }: Supervised): string {
  return `${fd}:${beat?.fd ?? 0}:${beat?.everyMs ?? 0}:${restarts}:${mark}`;
}

/** Takes the word out of the environment, so that no child of the server believes it. */
export function takeSupervised(env: NodeJS.ProcessEnv): Supervised | undefined {
  const word = env[supervisedVariable];
  delete env[supervisedVariable];
  const [, fd, beatFd, everyMs, restarts, mark] = /^(\d{1,3}):(\d{1,3}):(\d{1,8}):(\d{1,6}):([0-9a-f-]{36})$/.exec(word ?? '') ?? [];
  if (mark === undefined) return undefined;
  const beat = everyMs === '0' ? undefined : { fd: Number(beatFd), everyMs: Number(everyMs) };
  return { fd: Number(fd), beat, restarts: Number(restarts), mark };
}

/** The id that a session to be made shall have, where the supervisor gives one; a first try may have left such a session. */
export function givenSessionId(params: { readonly _meta?: Readonly<Record<string, unknown>> | null | undefined }): string | undefined {
  const given = params._meta?.[supervisorMeta] as { readonly sessionId?: unknown } | undefined;
  return typeof given?.sessionId === 'string' ? given.sessionId : undefined;
}
