/** `dsh-acp doctor`: checks what the server needs, says what to do about each fault, and finds model servers. */
import { ServerError } from '../../../shared/errors.ts';
import type { LoadedConfig } from '../../config/load-config.ts';
import type { KeyStore } from '../../credentials/key-store.ts';
import { checkMachine } from './check-machine.ts';
import { checkModel } from './check-model.ts';
import { checkPrices } from './check-prices.ts';
import { checkSandbox } from './check-sandbox.ts';
import { checkStateDir } from './check-state-dir.ts';
import { checkSubagents } from './check-subagents.ts';
import { type Finding, fail, ok } from './finding.ts';
import { defaultProbes, findModelServers, type FoundServer, type Probe } from './find-model-servers.ts';

function line(finding: Finding): string {
  const advice = finding.advice === undefined ? '' : `\n${' '.repeat(16)}${finding.advice}`;
  return `${finding.level.padEnd(4)} ${finding.subject.padEnd(10)} ${finding.text}${advice}\n`;
}

/** Quotes what a shell would take apart. */
function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function serverLines(servers: readonly FoundServer[], probes: readonly Probe[]): string {
  if (servers.length === 0) return `no model server answers on loopback (ports ${probes.map((probe) => probe.port).join(', ')})\n`;
  return servers
    .map((server) => {
      const uses = server.models.map((model) => `    dsh-acp --base-url ${server.baseUrl} --model ${shellWord(model)}\n`).join('');
      return `found ${server.product} at ${server.baseUrl}; to use it:\n${uses === '' ? '    it has no model yet\n' : uses}`;
    })
    .join('');
}

function checkFile(loaded: LoadedConfig): Finding {
  const { file } = loaded;
  if (file === undefined || !file.found) return ok('config', 'no file; defaults, variables and flags');
  return ok('config', file.path);
}

export interface DoctorOptions {
  readonly probes?: readonly Probe[];
  /** The module of the thread that runs commands; without it the sandbox is not tried. */
  readonly brokerPath?: string | URL;
  /** Where stored keys are. */
  readonly keys?: Pick<KeyStore, 'find'> | undefined;
}

/**
 * @param load resolves the configuration; may throw CONFIG_INVALID, which is then one of the findings
 * @returns the exit code: 1 when something failed
 */
export async function runDoctor(
  load: () => Promise<LoadedConfig>,
  print: (text: string) => unknown,
  { probes = defaultProbes, keys, brokerPath }: DoctorOptions = {},
): Promise<number> {
  const findings: Finding[] = [];
  let loaded: LoadedConfig | undefined;
  try {
    loaded = await load();
    findings.push(checkFile(loaded));
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    findings.push(fail('config', error.message, 'Correct it; `dsh-acp config` prints every key with its meaning.'));
  }
  const search = findModelServers(probes);
  if (loaded !== undefined) {
    const { config, choice } = loaded;
    findings.push(
      ...(await checkMachine(config.session.ripgrepPath)),
      ...(brokerPath === undefined ? [] : [await checkSandbox(config, brokerPath)]),
      await checkStateDir(config.stateDir),
      await checkModel(choice, keys),
    );
    findings.push(checkPrices(loaded.prices), ...(await checkSubagents(config.session.subagents)));
  }
  const failed = findings.filter((finding) => finding.level === 'fail').length;
  print(findings.map(line).join(''));
  print(serverLines(await search, probes));
  print(failed === 0 ? 'everything that is needed is there\n' : `${failed} of ${findings.length} checks failed\n`);
  return failed === 0 ? 0 : 1;
}
