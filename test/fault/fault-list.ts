/**
 * The faults that this project must survive are numbered from 1 to 90. Each has a test whose name begins with `fault N:`, or stands
 * here with where it is tested under another name, or why it cannot come up. Where a test injects less than the text of its fault
 * asks for, that is said here, too. `fault-list.test.ts` holds that.
 *
 * Each is tested through a server, with all that must hold after a fault (`faultTest`). Some are tested in one part of the program as well
 * (`partTest`): why, stands here.
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
  48: '300 cancels, not 10 000: each needs a turn of the real server. The same ones each time, as a check must not fail by chance; TEST_SEED draws others.',
  57: 'Text without end ends as `max_tokens`. A stream that passes the cap of bytes without that much text is no answer that could be kept: it ends as MALFORMED_RESPONSE.',
  69: 'ENFILE and EAGAIN from fork are not injected: both are limits of a whole machine or user, and a test may not use those up. As root without setpriv the read-only directory is not injected.',
  82: 'The network is tried against a listener on this machine: a test may not need the internet. DNS goes over the same sockets.',
};

/** Tested in parts only, and why no server can be. */
export const withoutServer: Readonly<Record<number, string>> = {
  73: 'The clock of the machine is everybody’s: a test cannot move it, and the log alone reads it for more than to tell people.',
};

/** Tested in a part, too, and what that shows which a server does not. */
export const inParts: Readonly<Record<number, string>> = {
  19: 'fdatasync that fails, and EROFS and EDQUOT: no file of a test makes the system give these. Appends that fail are injected into a server.',
  24: 'What the reader itself holds of a long log, which is little beside the memory of a server.',
  25: 'That the reader says it, whoever calls it.',
  64: 'Daemons in a real sandbox and without one; what gets away without one would be left behind by a server’s test.',
  70: 'A socket and a terminal among the targets.',
  71: 'Five ways in which a file can change.',
  72: 'A kill at any moment within a write: a process that does nothing but write is in one nearly always.',
  73: 'See above.',
  77: 'A hundred spellings, and a directory that is swapped a thousand times: each needs the moment of one call.',
  79: 'What a contained command sees of its own environment.',
  80: 'What is left without a sandbox: the documented limit.',
  81: 'Each place that is hidden.',
  82: 'A loopback of its own in the sandbox, which still works.',
  84: 'What a command in a real sandbox finds to write to.',
  86: 'A corpus of some sixty commands, and two policies at once.',
  87: 'Words to a program that says what it was given.',
  89: 'The draft of a file while it is written, which lives for milliseconds.',
};
