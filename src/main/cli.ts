/**
 * The program: from the command line to one of the commands. `start.ts` loads it.
 *
 * Only what every start needs is imported here; the rest comes with its command, as an editor waits for the first answer
 * of `serve`. Nothing here writes to stdout on the way to `serve`: stdout is the protocol.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { ServerError } from '../shared/errors.ts';
import { takeSupervised } from '../shared/supervised.ts';
import { packageRoot, packageVersion } from './cli/own-package.ts';
import { type CommandLine, parseCommandLine } from './cli/parse-command-line.ts';
import type { ConfigRequest, LoadedConfig } from './config/load-config.ts';
import { turnCrashReportsOff } from './crash-reports.ts';
import type { KeyStore } from './credentials/key-store.ts';

const exitFailed = 1;
const exitWrongSetting = 2;

/** The user's home; `''` when there is none, which only matters where it is needed. */
function home(): string {
  try {
    return homedir();
  } catch {
    return ''; // The user is in no table of users and HOME is not set.
  }
}

/** Where keys of `dsh-acp login` are; `undefined` for a user without a home. */
async function keyStore(): Promise<KeyStore | undefined> {
  const [{ KeyStore }, { userConfigDirectory }] = await Promise.all([
    import('./credentials/key-store.ts'),
    import('./config/read-config-file.ts'),
  ]);
  const directory = userConfigDirectory({ env: process.env, home: home(), cwd: process.cwd() });
  return directory === undefined ? undefined : new KeyStore(join(directory, 'credentials.json'));
}

async function load(line: CommandLine, found: Pick<ConfigRequest, 'ripgrepPath'> = {}): Promise<LoadedConfig> {
  const [keys, { loadConfig }, { availableParallelism }] = await Promise.all([
    keyStore(),
    import('./config/load-config.ts'),
    import('node:os'),
  ]);
  return await loadConfig({
    env: process.env,
    home: home(),
    cwd: process.cwd(),
    flags: line.flags,
    file: line.file,
    cores: availableParallelism(),
    version: packageVersion(),
    ...found,
    ...(keys === undefined ? {} : { storedKey: (baseUrl: string) => keys.has(baseUrl) }),
  });
}

async function serveCommand(line: CommandLine, keepCode?: () => void): Promise<number> {
  // Together: an editor waits for both.
  const supervised = takeSupervised(process.env);
  // A supervisor needs nothing of a server, and stays small without it.
  const asked = line.flags.get('supervise') ?? process.env['DSH_ACP_SUPERVISE'];
  const module = supervised === undefined && asked === 'on' ? undefined : import('./cli/serve-command.ts');
  const [loaded] = await Promise.all([load(line), module]);
  if (loaded.config.supervise && supervised === undefined) return await (await import('./cli/supervise-command.ts')).runSupervised(loaded);
  const { runServer } = await (module ?? import('./cli/serve-command.ts'));
  return await runServer(loaded, { handStarted: !line.named && process.stdin.isTTY, keys: await keyStore(), supervised, keepCode });
}

function print(text: string): number {
  // `dsh-acp --help | head` closes the pipe early: that is no failure.
  process.stdout.on('error', () => undefined);
  process.stdout.write(text);
  return 0;
}

function say(text: string): void {
  process.stderr.write(text);
}

async function helpFor({ command }: CommandLine): Promise<string> {
  if (command === 'run') return (await import('./cli/run-help-text.ts')).runHelpText(packageVersion());
  if (command === 'sessions') return (await import('./cli/sessions-help-text.ts')).sessionsHelpText(packageVersion());
  return (await import('./cli/help-text.ts')).helpText(packageVersion());
}

async function run(line: CommandLine, keepCode?: () => void): Promise<number> {
  if (line.version) return print(`${packageVersion()}\n`);
  if (line.help) return print(await helpFor(line));
  switch (line.command) {
    case 'serve':
      return await serveCommand(line, keepCode);
    case 'config':
      return print((await import('./cli/config-command.ts')).printConfig(await load(line), line.format));
    case 'grants': {
      const { runGrants } = await import('./cli/grants-command.ts');
      return print(await runGrants((await load(line)).config.stateDir, line.words));
    }
    case 'sessions': {
      const [{ readSessionsCall }, { runSessions }] = await Promise.all([
        import('./cli/sessions-flags.ts'),
        import('./cli/sessions-command.ts'),
      ]);
      const call = readSessionsCall(line.words, line.sessions);
      const { stateDir } = (await load(line)).config;
      const { stdin, stdout, stderr, env } = process;
      return await runSessions(call, { stateDir, cwd: process.cwd(), home: home(), env, stdin, stdout, stderr });
    }
    case 'doctor': {
      const [{ runDoctor }, { findRipgrep }] = await Promise.all([import('./cli/doctor/doctor.ts'), import('./cli/find-ripgrep.ts')]);
      const ripgrepPath = await findRipgrep();
      return await runDoctor(() => load(line, { ripgrepPath }), print, {
        keys: await keyStore(),
        brokerPath: join(packageRoot(), 'dist', 'worker', 'broker.cjs'),
      });
    }
    case 'run': {
      const { runRun } = await import('./cli/run-command.ts');
      return await runRun(line, () => load(line));
    }
    case 'login': {
      const { runLogin } = await import('./cli/login-command.ts');
      return await runLogin({
        loaded: await load(line),
        keys: await keyStore(),
        fromStdin: line.keyStdin,
        input: process.stdin,
        print,
        say,
      });
    }
    case 'logout': {
      const { runLogout } = await import('./cli/logout-command.ts');
      return await runLogout({ loaded: await load(line), keys: await keyStore(), print, say });
    }
    case 'demo':
    default: {
      const { runDemo } = await import('./cli/demo/demo.ts');
      return await runDemo({ packageRoot: packageRoot() });
    }
  }
}

function wantsStack(argv: readonly string[]): boolean {
  return process.env['DSH_ACP_LOG_LEVEL'] === 'debug' || /(?:^|\0)--log-level[=\0]debug(?:\0|$)/.test(argv.join('\0'));
}

/** One readable line (several only where our own text lists several faults), and the exit code. */
function reportFailure(error: unknown, argv: readonly string[]): number {
  const known = error instanceof ServerError;
  const text = known ? `${error.code}: ${error.message}` : `unexpected fault: ${error instanceof Error ? error.message : String(error)}`;
  process.stderr.write(`dsh-acp: ${known ? text.trimEnd() : text.replaceAll('\n', ' ')}\n`);
  if (wantsStack(argv) && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return known && error.code === 'CONFIG_INVALID' ? exitWrongSetting : exitFailed;
}

/**
 * Runs the command that `argv` names and sets the exit code. Never rejects.
 *
 * @param keepCode keeps the code that was compiled in this process for the next start; absent where that has been done
 */
export async function start(argv: readonly string[], keepCode?: () => void): Promise<void> {
  turnCrashReportsOff();
  try {
    process.exitCode = await run(parseCommandLine(argv), keepCode);
  } catch (error) {
    process.exitCode = reportFailure(error, argv);
  }
}
