/**
 * Files that people write: the configuration, policies as TOML and JSON, and lines of a jobs file. Each is taken, or refused with a
 * clear error of one line.
 *
 * An input is the kind of the file (`config.toml`, `policy.toml`, `policy.json`, `jobs.jsonl`), a line feed, and its content.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerError } from '../../../src/shared/errors.ts';
import { loadConfig } from '../../../src/main/config/load-config.ts';
import { readPolicyFile } from '../../../src/main/config/policy/read-policy-file.ts';
import { placeOf } from '../../../src/main/config/key-spelling.ts';
import { keyNames } from '../../../src/main/config/schema.ts';
import { openJobsFile } from '../../../src/main/run/jobs/jobs-file.ts';
import { expect, type FuzzTarget, Violation } from '../fuzz-target.ts';
import { deepJson, hostileJson, spoilJson, texts } from '../hostile-values.ts';
import type { Random } from '../random.ts';

const job = {
  id: 'a',
  prompt: ['one', 'two'],
  cwd: '/srv',
  setup: 'make',
  check: ['make', 'test'],
  setupTimeoutMs: 1000,
  budget: { maxSteps: 3, maxCostUsd: 1 },
  policy: { rules: [{ name: 'r', action: 'allow', commands: [['npm', 'test']] }], fallback: 'deny' },
  mode: 'default',
  env: { A: 'b' },
  labels: { a: 'b' },
  idempotent: true,
  seed: 1,
  priority: 2,
  meta: { x: [1] },
};
const policy = {
  rule: [
    {
      name: 'r',
      action: 'ask',
      tools: ['bash'],
      access: ['execute'],
      paths: ['src/**', '!a'],
      commands: [['git', '...']],
      network: 'none',
    },
  ],
  fallback: 'deny',
  ask_timeout_ms: 5,
};
const subagent = { name: 'helper', description: 'x', command: 'agent', args: ['a'], env: { A: 'b' } };
const kinds = ['config.toml', 'policy.toml', 'policy.json', 'jobs.jsonl'] as const;

let folder: string | undefined;

export const settingsTarget: FuzzTarget = {
  name: 'settings',
  maxInputBytes: 256 * 1024,
  seeds: [
    Buffer.from('config.toml\n[model]\nname = "x"\nbase_url = "http://127.0.0.1:1/v1"\n\n[[subagents]]\nname = "helper"\ncommand = "x"\n'),
    Buffer.from(`policy.toml\n${tomlOf(policy)}`),
    Buffer.from(`policy.json\n${JSON.stringify(policy)}`),
    Buffer.from(
      `jobs.jsonl\n${JSON.stringify(job)}\n\n${JSON.stringify({ id: 'b', prompt: 'x', repo: '.', base: 'main', subdirectory: 'a' })}\n`,
    ),
  ],
  generate(random) {
    const kind = random.pick(kinds);
    return Buffer.from(`${kind}\n${contentOf(random, kind)}`);
  },
  async check(input) {
    const feed = input.indexOf(10);
    const kind = input.subarray(0, Math.max(0, feed)).toString();
    const path = join((folder ??= mkdtempSync(join(tmpdir(), 'dsh-acp-fuzz-'))), kinds.find((one) => one === kind) ?? 'config.toml');
    writeFileSync(path, input.subarray(feed + 1), { mode: 0o600 });
    try {
      await read(path);
    } catch (error) {
      judge(error, path);
    }
  },
  close() {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    folder = undefined;
  },
};

async function read(path: string): Promise<void> {
  if (path.endsWith('.jsonl')) {
    const jobs = await openJobsFile(path, { skipInvalid: false, cwd: '/' });
    try {
      for (let index = 0; index < jobs.count; index += 1) await jobs.job(index);
    } finally {
      await jobs.close();
    }
  } else if (path.includes('policy')) await readPolicyFile(path, 'test');
  else
    await loadConfig({
      flags: new Map([['model', 'scripted']] as const),
      file: path,
      env: {},
      cwd: '/',
      home: '/home/x',
      cores: 2,
      version: '1',
      ripgrepPath: undefined,
    });
}

function judge(error: unknown, path: string): void {
  if (!(error instanceof ServerError)) throw error;
  expect(error.code === 'CONFIG_INVALID', () => `refused with ${error.code}: ${error.message}`);
  // Each wrong line of a jobs file is told on a line of its own.
  const lines = path.endsWith('.jsonl') ? error.message.split('\n') : [error.message];
  for (const line of lines) {
    if (/[\p{Cc}]/u.test(line)) throw new Violation(`a message with control characters: ${JSON.stringify(line)}`);
    expect(line.length < 1500, () => `a message of ${line.length} characters: ${line.slice(0, 300)}`);
  }
}

function contentOf(random: Random, kind: (typeof kinds)[number]): string {
  switch (kind) {
    case 'jobs.jsonl':
      return random
        .list(4, () =>
          random.chance(30)
            ? `{"id":"d","prompt":"x","cwd":"/","meta":{"x":${deepJson(random)}}}`
            : random.chance(5)
              ? hostileJson(random)
              : spoilJson(random, { ...job, id: random.pick(['a', 'b', 'c', 'd']) }),
        )
        .join(random.pick(['\n', '\r\n', '\n\n']));
    case 'policy.json':
      return random.chance(20)
        ? `{"rule":[{"name":${deepJson(random)}}]}`
        : random.chance(6)
          ? hostileJson(random, 3)
          : spoilJson(random, policy);
    case 'policy.toml':
      return tomlOf(parsed(spoilJson(random, policy)));
    case 'config.toml':
      return random.chance(40) ? `x = ${'['.repeat(20_000)}${']'.repeat(20_000)}` : configText(random);
    default:
      kind satisfies never;
      throw new RangeError('no such file');
  }
}

function configText(random: Random): string {
  const lines = random.list(6, () => {
    const key = random.pick(keyNames);
    const place = placeOf(key);
    return `${random.chance(8) ? JSON.stringify(random.pick(texts)) : place} = ${tomlValue(parsed(hostileJson(random)))}`;
  });
  return `${lines.join('\n')}\n${random.chance(2) ? tomlOf({ subagents: [parsed(spoilJson(random, subagent))] }) : ''}`;
}

function parsed(json: string): unknown {
  return JSON.parse(json) as unknown;
}

function tomlOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return `x = ${tomlValue(value)}\n`;
  return Object.entries(value)
    .map(([name, one]) => `${JSON.stringify(name)} = ${tomlValue(one)}\n`)
    .join('');
}

/** As TOML has it, but for what TOML has not. */
function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => tomlValue(one)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'nan';
  return `{ ${Object.entries(value)
    .map(([name, one]) => `${JSON.stringify(name)} = ${tomlValue(one)}`)
    .join(', ')} }`;
}
