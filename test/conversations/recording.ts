/** What was said between a client and the agent, in the order in which the client had it. */
import { ClientScreen } from '../support/client-screen.ts';
import type { Frame } from '../support/server-process.ts';
import type { SentFrame } from './conversation.ts';

/** What there must be of a client that has had its conversation. */
export interface Recorded {
  readonly frames: readonly Frame[];
  readonly sent: readonly SentFrame[];
  readonly violations: readonly string[];
  readonly stderr: string;
}

export interface Entry {
  readonly from: 'client' | 'agent';
  readonly frame: Frame;
}

/** A response with the request that it answers. */
export interface Answer {
  readonly at: number;
  readonly request: Frame;
  readonly response: Frame;
}

/** What a client shows of a session at one point, and what is wrong with the way there. */
export interface Moment {
  readonly at: number;
  readonly sessionId: string;
  readonly screen: ClientScreen;
}

export class Recording {
  readonly entries: readonly Entry[];
  readonly answers: readonly Answer[];
  readonly violations: readonly string[];
  readonly stderr: string;

  constructor({ frames, sent, violations, stderr }: Recorded) {
    const entries: Entry[] = [];
    let next = 0;
    for (const [index, frame] of frames.entries()) {
      for (; next < sent.length && sent[next]!.at <= index; next += 1) entries.push({ from: 'client', frame: sent[next]!.frame });
      entries.push({ from: 'agent', frame });
    }
    entries.push(...sent.slice(next).map(({ frame }) => ({ from: 'client' as const, frame })));
    this.entries = entries;
    this.violations = violations;
    this.stderr = stderr;
    this.answers = entries.flatMap(({ from, frame }, at) => {
      if (from !== 'agent' || frame.method !== undefined) return [];
      const request = entries
        .slice(0, at)
        .findLast((one) => one.from === 'client' && one.frame.method !== undefined && one.frame.id === frame.id);
      return request === undefined ? [] : [{ at, request: request.frame, response: frame }];
    });
  }

  get capabilities(): any {
    return this.requests('initialize')[0]?.params.clientCapabilities ?? {};
  }

  /** Requests of the client by a method. */
  requests(method: string): Frame[] {
    return this.entries.filter(({ from, frame }) => from === 'client' && frame.method === method).map(({ frame }) => frame);
  }

  /** Requests and notifications of the agent, with their places. */
  agentCalls(): { readonly at: number; readonly frame: Frame }[] {
    return this.entries.flatMap(({ from, frame }, at) => (from === 'agent' && frame.method !== undefined ? [{ at, frame }] : []));
  }

  updates(): { readonly at: number; readonly sessionId: string; readonly update: any }[] {
    return this.agentCalls().flatMap(({ at, frame }) =>
      frame.method === 'session/update' ? [{ at, sessionId: frame.params.sessionId as string, update: frame.params.update }] : [],
    );
  }

  answersTo(...methods: readonly string[]): Answer[] {
    return this.answers.filter(({ request }) => methods.includes(request.method!));
  }

  /** The session that an answer is about: the one it was asked for, or the new one. */
  static sessionOf({ request, response }: Answer): string | undefined {
    return response.result?.sessionId ?? request.params?.sessionId;
  }

  /** The screens of all sessions as they are at each answer, or what the client stumbled over on the way. */
  screens(): { readonly moments: Moment[]; readonly problems: string[] } {
    const screens = new Map<string, ClientScreen>();
    const [moments, problems]: [Moment[], string[]] = [[], []];
    const answers = new Map(this.answers.map((answer) => [answer.at, answer]));
    for (const [at, { from, frame }] of this.entries.entries()) {
      if (from === 'client' && frame.method === 'session/load') screens.delete(frame.params.sessionId);
      if (frame.method === 'session/update') {
        const screen = screens.get(frame.params.sessionId) ?? new ClientScreen();
        screens.set(frame.params.sessionId, screen);
        try {
          screen.take(frame.params.update);
        } catch (error) {
          problems.push((error as Error).message);
        }
      }
      const answer = answers.get(at);
      const sessionId = answer === undefined ? undefined : Recording.sessionOf(answer);
      const screen = sessionId === undefined ? undefined : screens.get(sessionId);
      if (screen !== undefined) moments.push({ at, sessionId: sessionId!, screen });
      if (screen !== undefined && answer!.request.method === 'session/prompt' && screen.open.length > 0)
        problems.push(`the prompt ${answer!.request.id} is answered while ${screen.open.join(', ')} has no end`);
    }
    return { moments, problems };
  }
}
