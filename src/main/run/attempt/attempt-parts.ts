/** What the tries of all attempts share. */
import type { AgentHost } from '../agent/agent-host.ts';
import type { SessionDefaults } from '../agent/job-session.ts';
import type { CommandEnvironment } from '../job-environment.ts';
import type { RunEvent } from '../run-event.ts';
import type { RunStop } from '../run-stop.ts';
import type { RunDirectory } from '../workspace/run-directory.ts';
import type { Worktrees } from '../workspace/worktrees.ts';
import type { CostMeter } from '../cost-meter.ts';

export interface AttemptParts {
  readonly host: AgentHost;
  readonly run: RunDirectory;
  readonly worktrees: Worktrees;
  readonly environment: CommandEnvironment;
  readonly stop: RunStop;
  readonly cost: CostMeter;
  readonly defaults: SessionDefaults;
  /** Where the agent keeps its sessions, if it is this program and was told so by the runner. */
  readonly stateDir: string | undefined;
  /** That the agent answers with, as far as the runner knows. */
  readonly model: string | undefined;
  /** Where patches go that are too large for a line. */
  readonly patchDir: string;
  /** Worktrees stay, for people to look at. */
  readonly keepWorktrees: boolean;
  readonly retries: number;
  /** Before the second try; doubles from then on. */
  readonly retryDelayMs: number;
  /** A permission was asked for and not granted. */
  readonly onRefused: () => void;
  /** Something keeps all jobs from their work until a person does something; `why` says what. */
  readonly onBlocked: (why: string) => void;
  readonly emit: (event: RunEvent) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}
