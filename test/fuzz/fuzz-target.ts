/**
 * What is fuzzed: a way to make inputs, and a check that no input may fail.
 */
import type { Random } from './random.ts';

export interface FuzzTarget {
  /** Also the name of its folder in `corpus/`. */
  readonly name: string;
  /** Inputs beside those that are kept: the start for mutations. */
  readonly seeds: readonly Buffer[];
  /** Bytes; longer inputs are cut. */
  readonly maxInputBytes: number;
  /** An input that knows the format. */
  generate(random: Random): Buffer;
  /** Throws for an input that the code under test gets wrong. `random` depends on the input alone. */
  check(input: Buffer, random: Random): Promise<void> | void;
  /** Lets go of what checks share. */
  close?(): Promise<void> | void;
}

/** An answer of the code under test that must not be. */
export class Violation extends Error {}

export function expect(holds: boolean, what: () => string): asserts holds {
  if (!holds) throw new Violation(what().slice(0, 2000));
}
