/** Limits of the server: `[limits]`. */
import type { KeySpec } from '../key-spec.ts';
import { count, milliseconds } from '../value-types.ts';

export const limitsKeys = {
  max_running_turns: {
    section: 'limits',
    type: count(1, 100_000),
    default: 1_024,
    doc: 'Turns that run at once, over all sessions; more wait.',
  },
  overlap: {
    section: 'limits',
    type: { kind: 'choice', values: ['queue', 'reject'] },
    default: 'queue',
    doc: 'A prompt that comes while another of its session runs: waits, or is refused.',
  },
  max_queued_prompts: {
    section: 'limits',
    type: count(1, 10_000),
    default: 16,
    doc: 'Prompts that may wait in one session.',
  },
  max_frame_bytes: {
    section: 'limits',
    type: count(1_024, 512 * 1024 * 1024),
    default: 32 * 1024 * 1024,
    doc: 'The longest line that is taken from the client; a longer one is answered with an error and skipped.',
  },
  cancel_grace_ms: {
    section: 'limits',
    type: milliseconds(0, 60_000),
    default: 900,
    doc: 'From `session/cancel` to its answer at the latest, and to the end of a thread that runs this turn alone and does not react.',
  },
  shutdown_grace_ms: {
    section: 'limits',
    type: milliseconds(100, 600_000),
    default: 5_000,
    doc: 'For everything to end in order when the client goes or a signal comes.',
  },
  stalled_reader_ms: {
    section: 'limits',
    type: milliseconds(100),
    default: 30_000,
    doc: 'A client that reads nothing for this long, with output waiting, is taken as gone.',
  },
  command_timeout_ms: {
    section: 'limits',
    type: milliseconds(100),
    default: 120_000,
    doc: 'Time limit of one command that does not ask for another.',
  },
  command_memory_mb: {
    section: 'limits',
    type: count(0, 16 * 1024 * 1024),
    default: 0,
    doc: 'Memory for all commands of one session together, in MB; where no control group can be made, for each of their processes. `0` sets no limit.',
  },
  command_max_processes: {
    section: 'limits',
    type: count(0, 4_000_000),
    default: 0,
    doc: 'Processes and threads of all commands of one session together; `0` sets no limit. See docs/sandbox.md.',
  },
  max_parallel_tool_calls: {
    section: 'limits',
    type: count(1, 100),
    default: 10,
    doc: 'Tools of one step that run at the same time.',
  },
  max_updates_per_second: {
    section: 'limits',
    type: count(0, 1_000),
    default: 0,
    doc: 'Frames of streamed text a second and session, for clients that draw slowly; text between two of them is sent together. `0` sends it as it comes.',
  },
} as const satisfies Record<string, KeySpec>;
