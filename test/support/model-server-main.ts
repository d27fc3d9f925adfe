/**
 * The local model server as a process of its own, for benches. Takes a port. Prints `{"port":N,"baseUrl":"…"}` on stdout and ends on SIGTERM or when stdin ends.
 */
import { ModelServer } from './model-server.ts';

const server = await ModelServer.start({ keepRequests: 0, port: Number(process.argv[2] ?? 0) });
process.stdout.write(`${JSON.stringify({ port: server.port, baseUrl: server.baseUrl })}\n`);
const end = (): void => {
  void server.close().finally(() => process.exit(0));
};
process.once('SIGTERM', end);
process.stdin.once('end', end).resume();
