/**
 * The little script of the report: sorts by a column, filters by text and by status. The page is whole without it; its controls are
 * hidden until it runs. It reads what is in the table and makes no HTML from text.
 */

export const reportScript = `(() => {
  const body = document.querySelector('#jobs tbody');
  const tools = document.querySelector('.tools');
  if (!body || !tools) return;
  const rows = [...body.rows];
  const off = new Set();
  const input = tools.querySelector('input');
  const count = tools.querySelector('output');
  let texts;
  const filter = () => {
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    if (words.length > 0) texts ??= new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    let shown = 0;
    for (const row of rows) {
      const fits = !off.has(row.dataset.s) && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = shown === rows.length ? '' : shown + ' of ' + rows.length + ' shown';
  };
  let timer;
  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
  for (const button of tools.querySelectorAll('button')) {
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(on));
      if (on) off.delete(button.value);
      else off.add(button.value);
      filter();
    });
  }
  const heads = [...document.querySelectorAll('#jobs th')];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      for (const each of heads) each.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const keyOf = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const order = new Intl.Collator(undefined, { numeric: true });
      const keyed = rows.map((row) => [keyOf(row), row]);
      keyed.sort(([a], [b]) => (typeof a === 'number' ? a - b : order.compare(a, b)) * (down ? -1 : 1));
      body.append(...keyed.map(([, row]) => row));
    });
  });
  tools.hidden = false;
})();`;
