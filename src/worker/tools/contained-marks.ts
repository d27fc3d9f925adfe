/**
 * What a finished command says of its sandbox: to the model, and what a person must know as well to the card. Pure. Here alone the output of a command is
 * looked through, for the wording: no decision hangs on it.
 */
import type { ControlNews, NetworkOff, RunResult } from '../../shared/broker-protocol.ts';

/** As common programs and runtimes say it when names are not resolved or nothing is reached. */
const lackOfNetwork =
  /could not resolve|temporary failure in name resolution|name or service not known|no address associated|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|network is unreachable|ECONNREFUSED|connection refused|failed to connect|could not connect|couldn't connect|no route to host|dns error|lookup .{1,200} on |unable to access 'https?:|max retries exceeded|network is down/i;
/** Of each end of the output: what a program says of its failure stands there. */
const lookedThrough = 8_192;

/** Why a command had no network, and what would give it one. `asked`: the call asked for it. */
export function networkOffMark(why: NetworkOff, asked: boolean): string {
  switch (why) {
    case 'settings':
      return '[no network: the settings of this server keep it off for all commands (sandbox_network = "off"); only the user can change that]';
    case 'rule':
      return '[no network: the rule of the policy that allows this command cuts it off; tell the user if it cannot be done without]';
    case 'unasked':
    default:
      return asked
        ? '[no network: the call asked for it, but nobody who decides here may give it; a rule of the policy with network = "any" or the setting sandbox_network = "on" would]'
        : '[no network: commands in the sandbox have none, neither the internet nor what other commands serve on localhost. If it is needed, make the call again with network set to true: whoever decides on the call decides on that]';
  }
}

/** In the card, too: whoever looks on sees why it failed. */
export function lackOfNetworkMark({ networkOff, stdout, stderr }: RunResult, asked: boolean): string | undefined {
  if (networkOff === undefined) return undefined;
  const looksSo = [stderr.text, stdout.text].some((text) => lackOfNetwork.test(text.slice(0, lookedThrough) + text.slice(-lookedThrough)));
  return looksSo ? networkOffMark(networkOff, asked) : undefined;
}

/** A command that failed may have failed by its sandbox, which its own words seldom say. For the model alone. */
export function containedMarks({ contained, exitCode, networkOff }: RunResult): string[] {
  if (contained !== true || exitCode === 0) return [];
  const network = networkOff === undefined ? '' : ' There is no network.';
  return [
    `[ran in a sandbox: only the workspace and a /tmp of this session can be written, and credentials are hidden. Hooks and settings of git, and those of other programs, can be neither changed nor moved nor deleted by a command: use the edit and write tools.${network}]`,
  ];
}

/** What the command has made that other programs trust. In the card, too. */
export function controlMarks({ controlFiles = [], movedFiles = [] }: ControlNews): string[] {
  const told = controlFiles.map(quoted).join(', ');
  const moved = movedFiles.map(({ path, to }) => `${quoted(path)} (now ${quoted(to)})`).join(', ');
  return [
    ...(controlFiles.length === 0 ? [] : [`[while it ran, files appeared or changed that other programs trust: ${told}; tell the user]`]),
    ...(movedFiles.length === 0
      ? []
      : [
          `[while it ran, files appeared that other programs trust, and nobody had been asked about that, so they were moved out of the workspace: ${moved}; tell the user. To make such a file use the write or edit tool, which asks where that is needed]`,
        ]),
  ];
}

function quoted(path: string): string {
  return JSON.stringify(path);
}
