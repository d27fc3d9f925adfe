/**
 * What the commands of a run get as their environment. The mark by which leftovers are found is in all of them.
 */
import { isSecretVariable } from '../../shared/secret-variables.ts';

/** Every process of a run carries `DSH_RUN=<run>.<part>;` in its environment. */
export const markVariable = 'DSH_RUN';

export function runMark(runId: string, part: string): string {
  return `${runId}.${part};`;
}

export interface CommandEnvironment {
  readonly ambient: Readonly<Record<string, string | undefined>>;
  /** Names of variables that hold keys of ours. */
  readonly withheld: readonly string[];
  readonly mark: string;
}

/**
 * For setup and check, in which code that a model wrote may run: the runner's own environment, scrubbed as for the session's commands,
 * with the job's variables over it.
 */
export function commandEnvironment(from: CommandEnvironment, job: Readonly<Record<string, string>>, seed: number): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(from.ambient)) {
    if (value === undefined || from.withheld.includes(name) || isSecretVariable(name, value)) continue;
    env[name] = value;
  }
  return { ...env, ...job, DSH_SEED: String(seed), [markVariable]: from.mark };
}
