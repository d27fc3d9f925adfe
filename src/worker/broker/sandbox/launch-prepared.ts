/** Starts what {@link Containment} has made of a command. What was opened for the start is closed behind it, however it went. */
import type { Environment } from '../environment.ts';
import type { Launch, LaunchSpec } from '../process-group.ts';
import type { PreparedCommand } from './containment.ts';

export async function launchPrepared(
  { argv, contained, networkOff }: PreparedCommand,
  spec: Omit<LaunchSpec, 'command' | 'args'>,
  launch: (spec: LaunchSpec) => Promise<Launch>,
): Promise<Launch> {
  try {
    const held = contained === undefined ? {} : { holdsSandbox: true, descriptors: contained.descriptors };
    const launched = await launch({ ...spec, ...argv, ...held });
    if (!launched.ok) return launched;
    const guard = contained?.guard;
    return { ...launched, ...(guard === undefined ? {} : { guard }), ...(networkOff === undefined ? {} : { networkOff }) };
  } finally {
    // Not waited for: whoever is to read the command's output must take it up before the command can end.
    void contained?.close();
  }
}

type Variables = Readonly<Record<string, string>>;

/** The environment without what leads to hidden sockets. */
export function withoutVariables(env: Variables, names: readonly string[] | undefined): Variables {
  if (names === undefined || names.length === 0) return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

/** Of an MCP server: what its own definition says it keeps. */
export function serverEnvironment({ env, withheld, contained }: PreparedCommand, given: Variables, ambient: Environment): Variables {
  const inherited = withheld?.filter((name) => given[name] === ambient[name]);
  return { ...env, ...withoutVariables(given, inherited), ...(contained === undefined ? {} : { TMPDIR: '/tmp' }) };
}
