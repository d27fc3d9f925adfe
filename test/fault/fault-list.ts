/**
 * The faults that this project must survive are numbered from 1 to 90. Each has a test whose name begins with `fault N:`, or stands
 * here with where it is tested under another name, or why it cannot come up. `fault-list.test.ts` holds that.
 */
export const lastFault = 90;

/** A file of `test/`, for a fault that is tested there under another name. */
export const testedElsewhere: Readonly<Record<number, string>> = {};

/** Why there is nothing to test. */
export const cannotHappen: Readonly<Record<number, string>> = {
  90: 'The server speaks on stdio only. Its one port, of the metrics, is bound to loopback and only reads.',
};
