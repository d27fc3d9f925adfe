/** The model server of the comparison as a process of its own. Prints `{"origin":"…"}` and ends on SIGTERM or when stdin ends. */
import { WireServer } from './wire-server.ts';

const server = await WireServer.start();
process.stdout.write(`${JSON.stringify({ origin: server.origin })}\n`);
const end = (): void => {
  void server.close().finally(() => process.exit(0));
};
process.once('SIGTERM', end);
process.stdin.once('end', end).resume();
