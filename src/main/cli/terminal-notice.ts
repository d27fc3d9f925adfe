/** What a person reads who starts the server by hand in a terminal: it would otherwise seem to hang. */

/** A few lines for stderr, with a newline at the end. `command` is the absolute path of this program. */
export function terminalNotice(version: string, command: string, model: string): string {
  const zed = { 'dsh-acp': { command: 'node', args: [command], env: {} } };
  return `dsh-acp ${version} is an agent server for editors and programs: it speaks ACP (JSON-RPC, a line a message) on stdin and stdout.
It answers with ${model}, and now waits for a client; Ctrl-D or Ctrl-C ends it.

To connect Zed, put this into its settings.json, then open a new thread with dsh-acp:
  "agent_servers": ${JSON.stringify(zed)}
JetBrains reads the same object from ~/.jetbrains/acp.json; README has Neovim and Emacs.

To give it a key:       dsh-acp login
To see it work:         dsh-acp demo
To check this machine:  dsh-acp doctor      (also finds model servers and prints the flags that use them)
All options:            dsh-acp --help
`;
}
