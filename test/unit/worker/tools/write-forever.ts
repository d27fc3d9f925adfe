/**
 * Child of the crash test: replaces one file without end until it is killed.
 */
import { readTool } from '../../../../src/worker/tools/read.ts';
import { writeTool } from '../../../../src/worker/tools/write.ts';
import { testContext } from './tool-context.ts';

const context = testContext(process.argv[2] ?? '');
await readTool.execute({ file_path: 'big.txt' }, context);
for (let round = 0; ; round += 1) {
  const outcome = await writeTool.execute({ file_path: 'big.txt', content: String(round % 10).repeat(400_000) }, context);
  if (outcome.isError) throw new Error(outcome.text);
  if (round === 3) process.stdout.write('writing\n');
}
