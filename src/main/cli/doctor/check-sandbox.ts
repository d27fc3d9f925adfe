/** What commands are kept in here: asked of the part that runs them, which tries it for real. */
import type { ServerConfig } from '../../../shared/config.ts';
import type { SandboxState } from '../../../shared/sandbox.ts';
import { BrokerThread } from '../../threads/broker-thread.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const subject = 'sandbox';
const advice =
  'Install bubblewrap (see docs/sandbox.md), or start the server in a container: until then commands run with all rights of this user.';

/** @param brokerPath the module of the thread that runs commands */
export async function checkSandbox(
  { sandbox, stateDir }: Pick<ServerConfig, 'sandbox' | 'stateDir'>,
  brokerPath: string | URL,
): Promise<Finding> {
  if (sandbox.use === 'off') {
    return warn(subject, 'turned off: commands run with all rights of this user', 'Take sandbox = "off" away where work is unattended.');
  }
  const broker = new BrokerThread({ entryPath: brokerPath, sandbox, ownDirectories: [stateDir], onStderr: () => undefined });
  try {
    return finding(await broker.api.sandboxState(), sandbox);
  } catch {
    return fail(subject, 'it could not be tried, as the thread that runs commands did not start', 'Install the package again.');
  } finally {
    await broker.shutdown(1000);
  }
}

function finding({ kind, version, why, limits }: SandboxState, { use, network, maxProcesses, memoryMb }: ServerConfig['sandbox']): Finding {
  const bounds = maxProcesses > 0 || memoryMb > 0 ? `; limits by ${limits ?? 'nothing'}` : '';
  if (kind === 'bubblewrap') {
    const net = network === 'on' ? 'with network' : 'without network';
    return ok(subject, `bubblewrap ${version ?? ''}: commands write in the workspace only, ${net}${bounds}`);
  }
  const text = `none: ${why ?? 'it does not work here'}${bounds}`;
  return use === 'required' ? fail(subject, `${text}; every command is refused`, advice) : warn(subject, text, advice);
}
