/** Loads the MCP client when the first server is connected to. */

export type McpClientLibrary = typeof import('./mcp-client.ts');

let library: Promise<McpClientLibrary> | undefined;

/** Fulfils with the library; loaded once per thread. A failed load is tried again by the next caller. */
export async function loadMcpClient(): Promise<McpClientLibrary> {
  library ??= import('./mcp-client.ts');
  try {
    return await library;
  } catch (error) {
    library = undefined;
    throw error;
  }
}
