/** General settings, at the top of the file. */
import type { KeySpec } from '../key-spec.ts';
import { line } from '../value-types.ts';

export const generalKeys = {
  profile: {
    section: '',
    type: { kind: 'choice', values: ['editor', 'automation'] },
    default: 'editor',
    doc: 'What the client is shown: `editor` streams everything, `automation` sends committed text only.',
  },
  isolation: {
    section: '',
    type: { kind: 'choice', values: ['dedicated', 'strict', 'shared'] },
    default: undefined,
    defaultText: '`dedicated`; `shared` for the automation profile',
    doc: 'Sessions to threads: one thread each and sharing beyond max_threads, never sharing (newcomers wait), or all on a few threads.',
  },
  model: {
    section: '',
    type: {
      kind: 'word',
      pattern: /^(?:scripted|replay:\/.+|[^\s:][^\s]*)$/u,
      says: 'a model name, `scripted`, or `replay:/absolute/path`',
    },
    default: undefined,
    defaultText: '`deepseek-flash` when there is a key, else `scripted`',
    doc: 'The model that answers. `scripted` is built in and needs no key; `replay:/absolute/path` plays a recorded stream.',
  },
  system_prompt: {
    section: '',
    alias: 'systemPrompt',
    type: line(200_000),
    default: undefined,
    defaultText: 'the built-in text',
    doc: 'Takes the place of the built-in instructions to the model.',
  },
  instructions: {
    section: '',
    type: { kind: 'choice', values: ['auto', 'off'] },
    default: 'auto',
    doc: 'Whether the model is given the AGENTS.md and CLAUDE.md files of the workspace, and the one beside the configuration file.',
  },
  client_files: {
    section: '',
    type: { kind: 'choice', values: ['auto', 'off'] },
    default: 'auto',
    doc: 'Whether files of the workspace are read and written through a client that offers both, so that unsaved text in an editor counts.',
  },
  agent_name: {
    section: '',
    alias: 'agentName',
    type: line(100),
    default: 'deepseek-harness-acp',
    doc: 'The name that `initialize` reports.',
  },
  agent_version: {
    section: '',
    alias: 'agentVersion',
    type: line(100),
    default: undefined,
    defaultText: 'the version of this package',
    doc: 'The version that `initialize` reports.',
  },
  state_dir: {
    section: '',
    type: { kind: 'path' },
    default: undefined,
    defaultText: '`$XDG_STATE_HOME/dsh-acp`, else `~/.local/state/dsh-acp`',
    doc: 'Where session logs and spilled output are kept (directories 0700, files 0600).',
  },
  titles: {
    section: '',
    type: { kind: 'choice', values: ['prompt', 'model', 'off'] },
    default: 'prompt',
    doc: 'What a session is called after its first turn: the first line of its prompt, or what one small call of the model makes of that turn. `off` shows no titles.',
  },
  look_only: {
    section: '',
    type: { kind: 'choice', values: ['on', 'off'] },
    default: 'off',
    doc: '`on` makes a server for looking at sessions: `session/load` shows and follows one, also while another server runs it, and nothing is made or changed.',
  },
  undo: {
    section: '',
    type: { kind: 'choice', values: ['files', 'workspace', 'off'] },
    default: 'files',
    doc: 'What `/undo` can bring back: what `write` and `edit` changed, also what commands changed in the workspace (found with git, which makes each command slower), or the conversation alone. What files held is kept beside the session log.',
  },
  supervise: {
    section: '',
    type: { kind: 'choice', values: ['on', 'off'] },
    default: 'off',
    doc: '`on` lets a small process hold the connection and start the server again when its process dies; see docs/supervisor.md.',
  },
  max_restarts: {
    section: '',
    type: { kind: 'integer', min: 0, max: 1_000 },
    default: 5,
    doc: 'How often within a minute a server that died is started again under `supervise`; after that its end is the end.',
  },
  stuck_server_ms: {
    section: '',
    type: { kind: 'integer', min: 0, max: 3_600_000 },
    default: 60_000,
    doc: 'Under `supervise`: a server whose main thread has not moved for so long is killed and started again. `0` waits for ever.',
  },
  log_level: {
    section: '',
    type: { kind: 'choice', values: ['silent', 'error', 'warn', 'info', 'debug'] },
    default: 'warn',
    doc: 'How much is written to stderr. Some clients show every line of it as an error.',
  },
  delegate: {
    section: '',
    type: { kind: 'choice', values: ['on', 'off'] },
    default: 'on',
    doc: 'Whether a session may delegate to further sessions of this server. `off` leaves only the agents of `[[subagents]]`; see docs/subagents.md.',
  },
} as const satisfies Record<string, KeySpec>;
