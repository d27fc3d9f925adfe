/**
 * A session as one page that stands for itself: nothing of it comes from elsewhere, and it runs no script. Its size is bounded, whatever
 * the length of the log.
 */
import { costText, countText } from '../run/view/figures.ts';
import { visibleLine } from '../run/view/visible-text.ts';
import { BoundedPieces } from './bounded-pieces.ts';
import { usageText } from './event-lines.ts';
import { type Html, html } from './html.ts';
import { damagedLine, eventLine, leftOutLine } from './item-html.ts';
import { pageFoot, pageHead } from './page-shell.ts';
import { transcriptStyle } from './page-style.ts';
import { readSessionLog } from './read-log.ts';
import { SessionFacts } from './session-facts.ts';
import { Transcript } from './transcript.ts';

/** Characters of the transcript; what lies between its beginning and its end is in the log. */
const mostChars = 8 * 1024 * 1024;

export interface SessionPlace {
  readonly id: string;
  readonly logPath: string;
  /** Whether a server has it open now. */
  readonly open: boolean;
}

/** The page in parts, in order. A log that cannot be read is said on it. */
export async function sessionPage({ id, logPath, open }: SessionPlace): Promise<string[]> {
  const facts = new SessionFacts();
  const transcript = new Transcript();
  const parts: string[] = [];
  const pieces = new BoundedPieces(mostChars, (text) => parts.push(text));
  const reading = await readSessionLog(logPath, {
    onHeader: (header) => {
      facts.onHeader(header);
      transcript.cwd = header.cwd;
    },
    onEvent: (event) => {
      try {
        facts.onEvent(event);
      } catch {
        // Data that is not what its type says: the transcript says so.
      }
      pieces.add(transcript.next(event));
    },
  });
  pieces.add(transcript.end());
  pieces.end((left) => leftOutLine(left).text);
  const problem =
    reading.problem === undefined
      ? undefined
      : eventLine(html`the log cannot be shown further: ${visibleLine(reading.problem, 300)}`, true);
  const shell = { title: facts.title ?? `Session ${id}`, style: { text: transcriptStyle } };
  const head = html`${pageHead(shell)}<h1>${facts.title ?? 'Session'}</h1>\n${factsCard({ id, logPath, open }, facts)}`;
  return [head.text, ...parts, html`${damagedLine(reading.damaged)}${problem}${pageFoot(shell)}`.text];
}

function factsCard({ id, open }: SessionPlace, facts: SessionFacts): Html {
  const { header } = facts;
  const rows: readonly (readonly [string, Html | string | undefined])[] = [
    ['session', html`<code>${id}</code>${open ? html` <span class="chip ok-chip">open</span>` : undefined}`],
    ['directory', header === undefined ? undefined : html`<code>${visibleLine(header.cwd, 400)}</code>`],
    ['began', header === undefined ? undefined : `${visibleLine(header.createdAt, 40).slice(0, 19).replace('T', ' ')} UTC`],
    ['agent', header === undefined ? undefined : visibleLine(`${header.agent.name} ${header.agent.version}`, 100)],
    ['model', facts.model === undefined ? undefined : visibleLine(facts.model, 100)],
    ['mode', facts.mode],
    ['forked from', header?.forkedFrom === undefined ? undefined : html`<code>${visibleLine(header.forkedFrom.sessionId, 80)}</code>`],
    ['turns', `${countText(facts.turnCount)}, ${countText(facts.steps)} steps, ${countText(facts.toolCalls)} tool calls`],
    ['tokens', usageText(facts.tokens)],
    ['cost', facts.costUsd === undefined ? undefined : costText(facts.costUsd)],
  ];
  return html`<div class="card facts"><dl>${rows.map(([name, value]) => (value === undefined ? undefined : html`<dt>${name}</dt><dd>${value}</dd>`))}</dl></div>
`;
}
