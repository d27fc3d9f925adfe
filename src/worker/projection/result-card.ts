/**
 * A tool's result view as the members of an ACP tool call update. `content` there replaces the card's whole content:
 * leaving it out is what keeps a terminal, or the diff of the call, on the screen.
 */
import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { TerminalResultView, ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import { diffContent, textContent } from './call-card.ts';
import { fencedText } from '../display/fenced-text.ts';
import { ContentBudget } from './size-caps.ts';
import { titleLine } from '../display/title-line.ts';

export interface ResultCardContext {
  readonly callId: string;
  readonly callCard: ToolCallView['card'];
  readonly terminalOutput: boolean;
  /** What the model reads; shown when the view brings nothing of its own. */
  readonly text: string;
  /** The end of what the call's terminal already shows; `undefined` when nothing was written into it yet. */
  readonly written?: string | undefined;
}

/** The members that a result adds to its update beside id and status. */
export type ResultCard = Pick<ToolCallUpdate, 'title' | 'content' | 'rawOutput' | '_meta'>;

/**
 * Builds the card of a result.
 *
 * @throws TypeError when a presenter gave something that is not a view
 */
export function resultCard(view: ToolResultView, context: ResultCardContext): ResultCard {
  const title = view.title === undefined ? {} : { title: titleLine(view.title, 'tool call') };
  switch (view.card) {
    case 'generic': {
      const budget = new ContentBudget();
      return { ...title, content: (view.content ?? [context.text]).map((text) => textContent(text, budget)) };
    }
    case 'terminal':
      return { ...title, ...terminalResult(view, context) };
    case 'diff':
      return view.diffs.length === 0 ? title : { ...title, content: diffContent(view.diffs, new ContentBudget()) };
    default:
      view satisfies never;
      throw new TypeError('a result view has one of the cards generic, terminal and diff');
  }
}

/** What is shown when nothing presents the result: the text that the model reads. A terminal that was shown stays, and ends. */
export function fallbackResultCard(context: ResultCardContext): ResultCard {
  if (context.callCard === 'terminal' && context.terminalOutput) return terminalEnd({ card: 'terminal' }, context);
  return { content: [textContent(context.text, new ContentBudget())] };
}

/** How a terminal ends whose call has no result: without its exit a client would show it as running for ever. */
export function terminalExit(callId: string): ResultCard {
  return { _meta: { terminal_exit: { terminal_id: callId, exit_code: null, signal: null } } };
}

function terminalResult(view: TerminalResultView, context: ResultCardContext): ResultCard {
  // A call that was not announced as a terminal has none to write into.
  if (context.callCard !== 'terminal') return { content: [textContent(context.text, new ContentBudget())] };
  return { ...exitStatus(view), ...(context.terminalOutput ? terminalEnd(view, context) : terminalText(view, context)) };
}

/** The status as values, also for clients that draw no terminals. */
function exitStatus({ exitCode, signal }: TerminalResultView): Pick<ResultCard, 'rawOutput'> {
  if (exitCode === undefined && signal === undefined) return {};
  return { rawOutput: { exitCode: exitCode ?? null, signal: signal ?? null } };
}

/** What is still missing in the terminal, and its exit. A command that never ran has no output: the text says why. */
function terminalEnd(view: TerminalResultView, { callId, text, written }: ResultCardContext): ResultCard {
  const rest = written === undefined ? (view.output ?? text) : view.output === undefined ? onNewLine(text, written) : '';
  const data = new ContentBudget().take(withNotes(rest, view.notes, written ?? ''));
  const exit = { terminal_id: callId, exit_code: view.exitCode ?? null, signal: view.signal ?? null };
  const output = data === '' && written !== undefined ? {} : { terminal_output: { terminal_id: callId, data } };
  return { _meta: { ...output, terminal_exit: exit } };
}

function withNotes(output: string, notes: readonly string[] | undefined, written: string): string {
  if (notes === undefined || notes.length === 0) return output;
  return output + onNewLine(notes.join('\n'), output === '' ? written : output);
}

function onNewLine(text: string, before: string): string {
  return before === '' || before.endsWith('\n') ? text : `\n${text}`;
}

/** For a client that draws no terminals: the output as a console, and how the command ended where that is no success. */
function terminalText(view: TerminalResultView, { text }: ResultCardContext): ResultCard {
  // No output of its own: the command never ran, and the text says why.
  if (view.output === undefined) return { content: [textContent(text, new ContentBudget())] };
  const output = new ContentBudget().take(withNotes(view.output, view.notes, ''));
  const blocks = [output.trim() === '' ? '(no output)' : fencedText(output, 'console')];
  if (view.signal !== undefined) blocks.push(`Killed by signal ${view.signal}`);
  else if (view.exitCode !== undefined && view.exitCode !== 0) blocks.push(`Exit code ${view.exitCode}`);
  return { content: blocks.map((block) => textContent(block, new ContentBudget())) };
}
