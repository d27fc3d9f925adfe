/** What commands are kept in here: asked of the part that runs them, which tries it for real. */
import type { ServerConfig } from '../../../shared/config.ts';
import { type SandboxState, sandboxSummary } from '../../../shared/sandbox.ts';
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
  const broker = new BrokerThread({ entryPath: brokerPath, sandbox, ownDirectories: [stateDir], onStderr: () => undefined });
  try {
    return finding(await broker.api.sandboxState(), sandbox);
  } catch {
    return fail(subject, 'it could not be tried, as the thread that runs commands did not start', 'Install the package again.');
  } finally {
    await broker.shutdown(1000);
  }
}

function finding(state: SandboxState, { use }: ServerConfig['sandbox']): Finding {
  const text = sandboxSummary(state);
  if (state.kind === 'bubblewrap') {
    return state.weak === undefined ? ok(subject, text) : warn(subject, text, 'Update bubblewrap.');
  }
  if (use === 'off') return warn(subject, text, 'Take sandbox = "off" away where work is unattended.');
  return use === 'required' ? fail(subject, `${text}; every command is refused`, advice) : warn(subject, text, advice);
}
