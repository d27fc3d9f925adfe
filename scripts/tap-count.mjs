/**
 * Reads the TAP text of one test file and counts its tests.
 *
 * A test is a block that holds no further block (`t.test` without subtests inside); a file with assertions alone is one
 * test. Blocks around others count only when something of their own failed, so that nothing is counted twice and no
 * failure is lost.
 */

const indentWidth = 4;

/** @param name what the outermost block is called: the file */
export function createTapCounter(name) {
  /** Open blocks, outermost first; `pending` is a named block that has not shown its first line yet. */
  const blocks = [block(name)];
  const outcome = { passed: 0, failed: 0, skipped: 0, failures: [] };
  let diagnostic;

  function block(title) {
    return { title, failures: [], children: 0, failedChildren: 0, points: 0, planned: undefined, skipAll: false, lastClosed: undefined };
  }

  function path(last) {
    return [...blocks.map((open) => open.title), ...(last === undefined ? [] : [last])].join(' > ');
  }

  /** Ends the innermost block, before its own test point is read at the level above. */
  function close() {
    const done = blocks.pop();
    const where = path(done.title);
    const short = done.planned !== undefined && done.planned !== done.points;
    if (short) done.failures.push({ name: where, lines: [`planned ${done.planned} points, saw ${done.points}`] });
    if (done.planned === undefined) done.failures.push({ name: where, lines: ['ended without a plan: it stopped in the middle'] });
    const failed = done.failures.length > 0;
    if (done.children === 0 || failed) {
      if (failed) outcome.failed += 1;
      else if (done.skipAll && blocks.length === 0) outcome.skipped += 1;
      else outcome.passed += 1;
    }
    outcome.failures.push(...done.failures);
    const parent = blocks.at(-1);
    if (parent !== undefined) {
      parent.children += 1;
      if (failed || done.failedChildren > 0) parent.failedChildren += 1;
      parent.lastClosed = { failed: failed || done.failedChildren > 0, countedPassed: !failed && done.children === 0 };
    }
  }

  function onPoint(ok, rest) {
    const current = blocks.at(-1);
    const [, rawDescription = '', directive = ''] = /^(?:\d+)?\s*-?\s*(.*?)(?:\s+#\s*(SKIP|TODO|time=).*)?$/i.exec(rest) ?? [];
    const description = rawDescription.trim();
    current.points += 1;
    const child = current.lastClosed;
    current.lastClosed = undefined;
    const word = directive.toUpperCase();
    if (word === 'SKIP' || word === 'TODO') {
      // A block can say only at its end that it was skipped: it has been counted as passed by then.
      if (child?.countedPassed === true) outcome.passed -= 1;
      outcome.skipped += 1;
      return;
    }
    if (child !== undefined) {
      // The point repeats its block's end; only a failure that the block itself did not show is news.
      if (ok || child.failed) return;
    }
    if (ok) return;
    diagnostic = { name: path(description === '' ? 'a point without a name' : description), lines: [] };
    current.failures.push(diagnostic);
  }

  function onText(text) {
    const point = /^(not )?ok\b(.*)$/.exec(text);
    if (point !== null) {
      diagnostic = undefined;
      onPoint(point[1] === undefined, point[2].trim());
      return;
    }
    const plan = /^1\.\.(\d+)(?:\s+#\s*(.*))?$/.exec(text);
    if (plan !== null) {
      blocks.at(-1).planned = Number(plan[1]);
      blocks.at(-1).skipAll = plan[1] === '0';
    } else if (text.startsWith('Bail out!')) {
      blocks.at(-1).failures.push({ name: path(), lines: [text] });
    }
  }

  let pendingTitle;
  let inYaml = false;

  /** One line, without its newline. */
  function line(text) {
    if (text.trim() === '') return;
    const depth = blocks.length - 1;
    const margin = ' '.repeat(indentWidth * depth);
    if (inYaml) {
      if (text.trimEnd() === `${margin}  ...`) inYaml = false;
      else if (diagnostic !== undefined && diagnostic.lines.length < 60) diagnostic.lines.push(text.slice(margin.length));
      return;
    }
    if (text.trimEnd() === `${margin}  ---`) {
      inYaml = true;
      return;
    }
    const indent = Math.floor((text.length - text.trimStart().length) / indentWidth);
    if (pendingTitle !== undefined && indent > depth) {
      blocks.push(block(pendingTitle));
      pendingTitle = undefined;
    }
    while (blocks.length - 1 > indent) close();
    const trimmed = text.trim();
    const title = /^# Subtest: (.*)$/.exec(trimmed);
    if (title !== null) pendingTitle = title[1];
    else onText(trimmed);
  }

  /** Call once, after the last line. */
  function end() {
    while (blocks.length > 0) close();
    return outcome;
  }

  return { line, end };
}

/**
 * Reads the outcomes of files, in their order, from lines of TAP. The text of a single file is all its own; in that of a group each file is
 * a test of the root. `onOutcome(file, outcome)` is called at the end of each.
 */
export function createTapReader(files, onOutcome) {
  const isGroup = files.length > 1;
  const left = [...files];
  const open = () => (left.length === 0 ? undefined : createTapCounter(left[0].replace(/\.js$/, '')));
  let counter = open();
  // Between two files of a group stands what tap says of the first one as a whole.
  let isInFile = !isGroup;
  const close = (problem) => {
    const outcome = counter.end();
    if (problem !== undefined && outcome.failures.length === 0) {
      outcome.failed += 1;
      outcome.failures.push({ name: left[0], lines: [problem] });
    }
    const file = left.shift();
    counter = open();
    isInFile = !isGroup;
    onOutcome(file, outcome);
  };
  return {
    left,
    line(text) {
      if (counter === undefined) return;
      if (!isGroup) counter.line(text);
      else if (!isInFile) isInFile = text === `# Subtest: ${left[0]}`;
      else if (text.startsWith('    ')) counter.line(text.slice(4));
      else if (/^(not )?ok \d/.test(text)) close(text.startsWith('not ') ? text : undefined);
    },
    /** Ends the file at work, with what was wrong with its process; false when there is none: between two files, or behind the last. */
    end(problem) {
      if (left.length === 0 || (!isInFile && left.length < files.length)) return false;
      close(problem);
      return true;
    },
  };
}
