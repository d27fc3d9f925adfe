/** What is seen while the demo runs: on a terminal one line a session, redrawn; elsewhere plain lines. */
import type { SessionRun } from './session-run.ts';

const redrawMs = 100;

export interface LiveView {
  /** Something happened in a session. */
  changed(run: SessionRun, what: string): void;
  /** Draws the last state and stops. */
  end(): void;
}

type Output = NodeJS.WriteStream;

function clip(text: string, width: number): string {
  const line = text.replaceAll(/\p{Cc}+/gu, ' ');
  return line.length > width ? `${line.slice(0, Math.max(0, width - 1))}…` : line;
}

function stateText(run: SessionRun): string {
  return run.state === 'running' ? `turn ${run.turn}` : run.state;
}

function plainView(output: Output): LiveView {
  return {
    changed: (run, what) => output.write(`${run.label}  ${stateText(run).padEnd(7)}  ${clip(what, 100)}\n`),
    end: () => undefined,
  };
}

function terminalView(output: Output, runs: readonly SessionRun[]): LiveView {
  const latest = new Map<SessionRun, string>();
  let drawn = false;
  const draw = () => {
    // A terminal that does not know its size says 0.
    const width = output.columns > 0 ? output.columns : 80;
    const lines = runs.map((run) => {
      const updates = `${run.updates} updates`.padStart(13);
      return clip(`${run.label}  ${stateText(run).padEnd(7)} ${updates}  ${latest.get(run) ?? ''}`, width - 1);
    });
    // Up over the lines of the last drawing, and each line cleared before it is written.
    output.write(`${drawn ? `\u001b[${runs.length}A` : ''}${lines.map((line) => `\u001b[2K${line}\n`).join('')}`);
    drawn = true;
  };
  const timer = setInterval(draw, redrawMs);
  return {
    changed: (run, what) => latest.set(run, what),
    end: () => {
      clearInterval(timer);
      draw();
    },
  };
}

/** @param runs may be filled later, but before the first drawing */
export function createLiveView(output: Output, runs: readonly SessionRun[]): LiveView {
  return output.isTTY ? terminalView(output, runs) : plainView(output);
}
