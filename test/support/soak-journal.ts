/** What happened in a soak, and when: so that whatever does not hold is told with the session, the moment and the faults around it. */

export interface Entry {
  /** Seconds since the start. */
  readonly at: number;
  /** A session's id, or what was broken. */
  readonly who: string;
  readonly what: string;
}

const mostEntries = 200_000;

export class Journal {
  readonly #start = performance.now();
  #entries: Entry[] = [];
  readonly complaints: string[] = [];

  /** Seconds since the start. */
  get now(): number {
    return (performance.now() - this.#start) / 1000;
  }

  note(who: string, what: string): void {
    this.#entries.push({ at: this.now, who, what });
    if (this.#entries.length > mostEntries) this.#entries = this.#entries.slice(mostEntries / 2);
  }

  /** Something does not hold. Tells the last of what happened to `who`, and what was broken and what servers said within 15 seconds. */
  complain(text: string, who?: string): void {
    const { now } = this;
    this.note(who ?? 'soak', `WRONG: ${text}`);
    const about = who === undefined ? [] : this.#entries.filter((one) => one.who === who).slice(-6, -1);
    const isBeside = ({ who: what, at }: Entry): boolean => (what === 'fault' || what.startsWith('stderr')) && at > now - 15;
    const broken = this.#entries.filter(isBeside).slice(-8);
    const lines = [...about, ...broken].sort((a, b) => a.at - b.at).map(textOf);
    this.complaints.push([`at ${now.toFixed(1)} s${who === undefined ? '' : `, ${who}`}: ${text}`, ...lines].join('\n    '));
  }

  /** What was broken from one moment to another. */
  faults(from: number, to: number): Entry[] {
    return this.#entries.filter(({ who, at }) => who === 'fault' && at >= from && at <= to);
  }

  text(): string {
    return `${this.#entries.map(textOf).join('\n')}\n`;
  }
}

export function textOf({ at, who, what }: Entry): string {
  return `${at.toFixed(2).padStart(9)}  ${who}  ${what}`;
}
