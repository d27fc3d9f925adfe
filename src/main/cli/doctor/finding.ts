/** One line of `dsh-acp doctor`. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly subject: string;
  readonly text: string;
  /** What a person can do about it. */
  readonly advice?: string;
}

export function ok(subject: string, text: string): Finding {
  return { level: 'ok', subject, text };
}

export function warn(subject: string, text: string, advice: string): Finding {
  return { level: 'warn', subject, text, advice };
}

export function fail(subject: string, text: string, advice: string): Finding {
  return { level: 'fail', subject, text, advice };
}
