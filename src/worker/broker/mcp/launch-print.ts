/**
 * What an approval of a server's tools is bound to: prints of the definition that it is started with, and of each tool.
 *
 * They stand in logs and among a workspace's answers, and the definition may hold a password: the print is made slow on
 * purpose, and for one workspace only, so that nobody finds the one from the other by trying.
 */
import { createHash, scrypt } from 'node:crypto';
import type { McpServerSpec, McpToolInfo } from '../../../shared/mcp-protocol.ts';

const cost = { N: 4096, r: 8, p: 1 } as const;
const bytes = 16;

/** Changes when anything of the definition does. Some milliseconds, and not of this thread. */
export async function launchPrint(workspace: string, spec: McpServerSpec): Promise<string> {
  return await new Promise((resolve, reject) => {
    scrypt(definitionText(spec), workspace, bytes, cost, (error, key) => (error === null ? resolve(key.toString('hex')) : reject(error)));
  });
}

/** Whether both start the same server with the same things. */
export function definitionText(spec: McpServerSpec): string {
  return spec.type === 'stdio'
    ? JSON.stringify([spec.type, spec.name, spec.command, spec.args, sorted(spec.env)])
    : JSON.stringify([spec.type, spec.name, spec.url, sorted(spec.headers)]);
}

/** Changes with the server's definition and with what the tool says of itself. */
export function toolPrint(launch: string, tool: Omit<McpToolInfo, 'print'>): string {
  const { name, description, parameters, hints } = tool;
  const text = JSON.stringify([launch, name, description, parameters, hints]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

function sorted(record: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}
