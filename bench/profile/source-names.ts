/**
 * From places in the bundles to places in the sources, by the source maps that lie beside the bundles.
 */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CallFrame } from './cpu-profile.ts';

export interface SourceFrame {
  /** `(anonymous)` where the code gives none. */
  readonly name: string;
  /** From the root of the checkout, of the package for what is in `node_modules`; `node:…` and `(program)` as V8 has them. */
  readonly file: string;
  /** From 1; 0 where there is none. */
  readonly line: number;
  /** `dsh-acp`, `node`, `V8`, `native` for functions in C++, or the name of an npm package. */
  readonly owner: string;
}

/** The build puts these files into such a function, on its first line, behind the making of their maps: see scripts/build.mjs. */
const wrapper = '(function (exports, require, module, __filename, __dirname) {';
const wrappedFile = /\/(?:session-host|program)\.cjs$/;

export class SourceNames {
  readonly #root: string;
  readonly #maps = new Map<string, SourceMap | undefined>();
  readonly #lines = new Map<string, readonly string[] | undefined>();
  readonly #seen = new Map<string, SourceFrame>();

  /** `root` is the checkout. */
  constructor(root: string) {
    this.#root = root;
  }

  of(frame: CallFrame): SourceFrame {
    const key = `${frame.functionName} ${frame.url}:${frame.lineNumber}:${frame.columnNumber}`;
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    const found = this.#find(frame);
    this.#seen.set(key, found);
    return found;
  }

  #find({ functionName, url, lineNumber, columnNumber }: CallFrame): SourceFrame {
    // esbuild names what runs a module late after its file.
    const name = functionName === '' ? '(anonymous)' : /\/.*\.[cm]?[jt]s$/.test(functionName) ? '(module)' : functionName;
    if (url === '') return { name, file: '', line: 0, owner: name.startsWith('(') ? 'V8' : 'native' };
    if (url.startsWith('node:')) return { name, file: url, line: lineNumber + 1, owner: 'node' };
    const path = url.startsWith('file:') ? fileURLToPath(url) : url;
    const shift = wrappedFile.test(path) && lineNumber === 0 ? wrapper.length : 0;
    // The body of a module is a function without a name that begins where the file does, or with its wrapper.
    if (functionName === '' && lineNumber === 0 && columnNumber <= shift) return this.#moduleBody(path);
    const column = this.#unescaped(path, lineNumber, Math.max(0, columnNumber - shift));
    const entry = this.#mapOf(path)?.findEntry(lineNumber, column);
    if (entry !== undefined && 'originalSource' in entry) {
      return { name, ...this.#place(resolve(dirname(path), entry.originalSource)), line: entry.originalLine + 1 };
    }
    return { name, ...this.#place(path), line: lineNumber + 1 };
  }

  /** A bundle holds many sources: the last of them is the one that the others were brought in for. */
  #moduleBody(path: string): SourceFrame {
    const sources = this.#mapOf(path)?.payload.sources ?? [];
    const last = sources.at(-1);
    const more = sources.length > 1 ? ` and ${sources.length - 1} more` : '';
    return { name: last === undefined ? '(module)' : `(module ${basename(last)}${more})`, ...this.#place(path), line: 0 };
  }

  /** The build writes what is not ASCII as six letters after the map was made: the column before that. */
  #unescaped(path: string, lineNumber: number, column: number): number {
    if (!this.#lines.has(path)) {
      const file = `${path}.unescaped`;
      this.#lines.set(path, existsSync(file) ? readFileSync(file, 'utf8').split('\n') : undefined);
    }
    const content = this.#lines.get(path)?.[lineNumber];
    if (content === undefined) return column;
    let before = 0;
    for (let escaped = 0; escaped < column && before < content.length; before += 1) escaped += content.charCodeAt(before) > 127 ? 6 : 1;
    return before;
  }

  #mapOf(path: string): SourceMap | undefined {
    if (!this.#maps.has(path)) {
      const file = `${path}.map`;
      this.#maps.set(path, existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined);
    }
    return this.#maps.get(path);
  }

  #place(path: string): { readonly file: string; readonly owner: string } {
    const [, inPackage] = /^.*\/node_modules\/(.*)$/.exec(path) ?? [];
    if (inPackage !== undefined) {
      const [first = '', second = ''] = inPackage.split('/');
      return { file: inPackage, owner: first.startsWith('@') ? `${first}/${second}` : first };
    }
    const file = path.startsWith(`${this.#root}/`) ? path.slice(this.#root.length + 1) : path.replace(/^.*\/dist\//, 'dist/');
    return { file, owner: 'dsh-acp' };
  }
}
