/**
 * The ACP client of the SDK, and nothing else: a chunk of its own, which only {@link loadAcpClient} loads. With zod it
 * weighs 14 MB and 90 ms, which a server without subagents does not pay.
 */
export { client } from '@agentclientprotocol/sdk';
