/** Loads the SDK's client when the first subagent starts. The one place in a thread where the SDK comes in at run time. */

export type AcpClientLibrary = typeof import('./acp-client.ts');

let library: Promise<AcpClientLibrary> | undefined;

/** Fulfils with the library; loaded once per thread. A failed load is tried again by the next caller. */
export async function loadAcpClient(): Promise<AcpClientLibrary> {
  library ??= import('./acp-client.ts');
  try {
    return await library;
  } catch (error) {
    library = undefined;
    throw error;
  }
}
