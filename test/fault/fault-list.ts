/**
 * The faults that this project must survive are numbered from 1 to 90. Each has a test whose name begins with `fault N:`, or stands
 * here with where it is tested under another name, or why it cannot come up. Where a test injects less than the text of its fault
 * asks for, that is said here, too. `fault-list.test.ts` holds that.
 */
export const lastFault = 90;

/** A file of `test/`, for a fault that is tested there under another name. */
export const testedElsewhere: Readonly<Record<number, string>> = {};

/** Why there is nothing to test. */
export const cannotHappen: Readonly<Record<number, string>> = {
  90: 'The server speaks on stdio only. Its one port, of the metrics, is bound to loopback and only reads.',
};

/** For a fault with a test of its number: in what the test asks less than the fault's text, or the server answers otherwise, and why. */
export const deviations: Readonly<Record<number, string>> = {
  14: 'The thread dies while a session is attached. `session/new` itself starts no thread, so the first prompt or a load tells the error; a session that was made stays and can be asked again.',
  15: '30 sessions, and memory within half of what it was before plus 40 MB: 256 sessions and a tenth would take longer than the whole suite may, and the allocator of so small a process moves by more than a tenth.',
  16: 'The last turn is cut at 150 places: at each of the first 60 bytes, then in even steps. Every byte of a line is cut in the unit tests of the log reader.',
  24: '10 MB instead of 1 GB: what is held is compared with a bound that does not depend on the length.',
  48: '300 cancels from a new seed each time, not 10 000: each needs a turn of the real server. The seed is printed.',
  57: 'Text without end ends as `max_tokens`. A stream that passes the cap of bytes without that much text is no answer that could be kept: it ends as MALFORMED_RESPONSE.',
  69: 'ENFILE and EAGAIN from fork are not injected: both are limits of a whole machine or user, and a test may not use those up. As root without setpriv the read-only directory is not injected.',
  82: 'The network is tried against a listener on this machine: a test may not need the internet. DNS goes over the same sockets.',
};
