import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';

const guard = new URL('../../../../src/main/transport/stdout-guard.js', import.meta.url).href;

/** Strays of every kind, and 3 MB of protocol so that a pipe fills up. */
const script = `
  console.log('stray before'); // console caches its stream here, after the guard below it must not matter
  const { takeStdout } = await import(process.argv[1]);
  const out = takeStdout();
  console.log('stray log'); console.info('stray info'); console.table([1]); console.dir({ a: 1 });
  process.stdout.write('stray write\\n');
  for (let i = 0; i < 300; i += 1) out.write(String(i).padStart(6, '0') + 'x'.repeat(9993) + '\\n');
  out.write('last\\n', () => { console.log('stray end'); process.exit(0); });
`;
const cleanScript = script.replace(/console\.log\('stray before'\).*/, '');

function isProtocol(output: string): boolean {
  const lines = output.split('\n');
  return (
    lines.length === 302 &&
    lines[300] === 'last' &&
    lines.slice(0, 300).every((line, i) => line === String(i).padStart(6, '0') + 'x'.repeat(9993))
  );
}

function run(source: string, stdout: 'pipe' | number) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source, guard], { stdio: ['ignore', stdout, 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

const strays = ['stray log', 'stray info', 'stray write', 'stray end', 'a: 1'];

t.test('a socket pair carries the protocol only; strays go to stderr', async (t) => {
  const child = run(cleanScript, 'pipe');
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes');
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  t.ok(isProtocol(output));
  for (const stray of strays) t.match(errors, stray);
});

t.test('a pipe of the shell carries the protocol only', async (t) => {
  const command = `"$0" --input-type=module -e "$1" "$2" | cat`;
  const child = spawn('/bin/sh', ['-c', command, process.execPath, cleanScript, guard], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  t.ok(isProtocol(output));
  for (const stray of strays) t.match(errors, stray);
});

t.test('a file takes the protocol in order, and appends keep what was there', async (t) => {
  const dir = t.testdir({});
  const path = join(dir, 'out.ndjson');
  const fd = openSync(path, 'w');
  const child = run(cleanScript, fd);
  closeSync(fd);
  if (child.stderr === null) throw new Error('no pipe');
  const errors = await text(child.stderr);
  t.ok(isProtocol(readFileSync(path, 'utf8')));
  for (const stray of strays) t.match(errors, stray);
});

t.test('/dev/null is accepted', async (t) => {
  const child = run(cleanScript, openSync('/dev/null', 'w'));
  if (child.stderr === null) throw new Error('no pipe');
  t.match(await text(child.stderr), 'stray end');
});

t.test('a console that was used before the guard is turned too', async (t) => {
  const child = run(script, 'pipe');
  if (child.stdout === null || child.stderr === null) throw new Error('no pipes');
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  t.ok(output.startsWith('stray before\n'));
  t.ok(isProtocol(output.slice('stray before\n'.length)));
  for (const stray of strays) t.match(errors, stray);
});

const transport = (name: string): string => new URL(`../../../../src/main/transport/${name}.js`, import.meta.url).href;

/** The smallest server over the real descriptors, stopped by the end of input or by a broken output. */
const server = `
  const [guard, writerUrl, streamUrl, sdk] = process.argv.slice(1);
  const { takeStdout } = await import(guard);
  const out = takeStdout();
  const { FrameWriter } = await import(writerUrl);
  const { createAgentStream } = await import(streamUrl);
  const { agent } = await import(sdk);
  const over = async (why) => {
    stream.stop();
    console.log(why);
    await writer.idle();
    process.exitCode = why === 'end' ? 0 : 3;
  };
  const writer = new FrameWriter(out, { stalledReaderMs: 5000, onBroken: (why) => void over(why) });
  const stream = createAgentStream({
    input: process.stdin, writer, maxFrameBytes: 32 * 1024 * 1024, onEnd: () => void over('end'), onNote: () => {},
  });
  agent({ name: 'a' })
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest('session/prompt', (c) => ({ stopReason: 'end_turn', _meta: { bytes: c.params.prompt[0].data.length } }))
    .connect(stream);
`;

function serve() {
  const urls = [guard, transport('frame-writer'), transport('agent-stream'), import.meta.resolve('@agentclientprotocol/sdk')];
  const child = spawn(process.execPath, ['--input-type=module', '-e', server, ...urls], { stdio: ['pipe', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

const initialize = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n';

t.test('a prompt of 20 MB in one write behind initialize is answered, and the end of input ends the process by itself', async (t) => {
  const child = serve();
  const data = 'A'.repeat(20 * 1024 * 1024);
  const prompt = { sessionId: 's', prompt: [{ type: 'image', mimeType: 'image/png', data }] };
  child.stdin.end(`${initialize}${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/prompt', params: prompt })}\n`);
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  const frames = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  t.match(frames, [
    { id: 0, result: { protocolVersion: 1 } },
    { id: 1, result: { _meta: { bytes: data.length } } },
  ]);
  t.equal(errors, 'end\n');
  t.equal(code, 0);
});

t.test('a client that stops listening ends the process by itself', async (t) => {
  const child = serve();
  child.stdin.write(initialize);
  await once(child.stdout, 'data');
  child.stdout.destroy();
  child.stdin.write('[]\n'.repeat(20_000));
  child.stdin.on('error', () => {
    // The process has ended with our bytes unread, as it should.
  });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  t.equal(errors, 'closed\n');
  t.equal(code, 3);
});
