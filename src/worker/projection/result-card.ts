/**
 * A tool's result view as the members of an ACP tool call update. `content` there replaces the card's whole content:
 * leaving it out is what keeps a terminal on the screen.
 */
import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
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
}

/** The members that a result adds to its update beside id and status. */
export type ResultCard = Pick<ToolCallUpdate, 'title' | 'content' | '_meta'>;

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
      return { ...title, content: diffContent(view.diffs, new ContentBudget()) };
    default:
      throw new TypeError('a result view has one of the cards generic, terminal and diff');
  }
}

/** What is shown when nothing presents the result: the text that the model reads. */
export function fallbackResultCard(text: string): ResultCard {
  return { content: [textContent(text, new ContentBudget())] };
}

type TerminalView = Extract<ToolResultView, { card: 'terminal' }>;

function terminalResult(view: TerminalView, context: ResultCardContext): ResultCard {
  // A call that was not announced as a terminal has none to write into.
  if (context.callCard !== 'terminal') return fallbackResultCard(context.text);
  if (!context.terminalOutput) return terminalText(view, context);
  const data = new ContentBudget().take(view.output ?? context.text);
  // Also a command that never ran is over: without its exit a client shows the terminal as running for ever.
  const exit = { terminal_id: context.callId, exit_code: view.exitCode ?? null, signal: view.signal ?? null };
  return { _meta: { terminal_output: { terminal_id: context.callId, data }, terminal_exit: exit } };
}

/** For a client that draws no terminals: the output as a console, and how the command ended where that is no success. */
function terminalText(view: TerminalView, context: ResultCardContext): ResultCard {
  // No output of its own: the command never ran, and the text says why.
  if (view.output === undefined) return fallbackResultCard(context.text);
  const budget = new ContentBudget();
  const output = budget.take(view.output);
  const blocks = [output.trim() === '' ? '(no output)' : fencedText(output, 'console')];
  if (view.signal !== undefined) blocks.push(`Killed by signal ${view.signal}`);
  else if (view.exitCode !== undefined && view.exitCode !== 0) blocks.push(`Exit code ${view.exitCode}`);
  return { content: blocks.map((block) => textContent(block, new ContentBudget())) };
}
