/**
 * What `dist/main/cli.js` is: it loads the program, `program.cjs`, with the code that V8 compiled for it at an earlier start. Compiling
 * it anew, and each function at its first call, would be a third of the time from the start to the first answer.
 *
 * Stays tiny: it is the one part that every start compiles.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import type { start } from './cli.ts';
import { openCodeStore } from './code-store.ts';
import { paceCompiler } from './threads/compiler-pace.ts';

/** Put in by the build: the hash of what `program.cjs` was made from. */
declare const buildHash: string;

type Wrapper = (exports: object, require: NodeJS.Require, module: object, filename: string, dirname: string) => void;

// V8 takes only code that was compiled under the same flags, so before anything is compiled.
paceCompiler();
const filename = join(__dirname, 'program.cjs');
const store = openCodeStore(process.env, buildHash);
const cachedData = store?.read();
// The build writes ASCII only, in the wrapper of CommonJS.
const source = readFileSync(filename, 'latin1');
const script = new Script(source, cachedData === undefined ? { filename } : { filename, cachedData });
const module = { exports: {} as { start: typeof start } };
(script.runInThisContext() as Wrapper)(module.exports, require, module, filename, __dirname);
const isFirst = store !== undefined && (cachedData === undefined || script.cachedDataRejected === true);
void module.exports.start(process.argv.slice(2), isFirst ? () => store.write(script.createCachedData()) : undefined);
