// Search for rows by their id or text.

const RESULTS = 12;

/** Rows whose id or text matches, the best matches first. */
function findRows(report, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  const groups = [[], [], [], []];
  const seen = new Set();
  const add = (group, row, where) => {
    if (seen.has(row) || groups[group].length >= RESULTS) return;
    seen.add(row);
    groups[group].push({ row, where });
  };
  for (let row = 0; row < report.n; row++) {
    const id = report.id(row).toLowerCase();
    if (id === wanted) add(0, row, null);
    else if (String(report.position(row)) === wanted) add(1, row, null);
    else if (id.startsWith(wanted)) add(1, row, null);
    else if (id.includes(wanted)) add(2, row, null);
  }
  for (const column of [report.target, ...report.columns]) {
    if (column.isNumber || groups.flat().length >= RESULTS) continue;
    // Compare each category once instead of each row.
    const hits =
      column.kind === 'category'
        ? column.categories.map((name) => String(name).toLowerCase().includes(wanted))
        : null;
    if (hits && !hits.includes(true)) continue;
    for (let row = 0; row < report.n && groups[3].length < RESULTS; row++) {
      const hit = hits
        ? hits[column.data[row]]
        : column.values[row]?.toLowerCase().includes(wanted);
      if (hit) add(3, row, column);
    }
  }
  return groups.flat().slice(0, RESULTS);
}

function listenToSearch(app) {
  const input = byId('search');
  const list = byId('search-results');
  let found = [];
  let active = 0;
  let waiting = 0;

  const close = () => {
    clearTimeout(waiting);
    waiting = 0;
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const mark = () => {
    if (!found.length) return input.removeAttribute('aria-activedescendant');
    [...list.children].forEach((item, i) =>
      item.setAttribute('aria-selected', String(i === active)),
    );
    input.setAttribute('aria-activedescendant', `result-${active}`);
    list.children[active].scrollIntoView({ block: 'nearest' });
  };
  const choose = (i) => {
    if (!found[i]) return;
    close();
    input.value = '';
    app.select(found[i].row, { bringIntoView: true });
  };
  const show = () => {
    clearTimeout(waiting);
    waiting = 0;
    found = findRows(app.report, input.value);
    active = 0;
    const items = found.map(({ row, where }, i) =>
      make(
        'li',
        {
          id: `result-${i}`,
          role: 'option',
          'data-row': String(row),
          on: {
            // mousedown comes before the field loses the focus and closes the list.
            mousedown: (event) => {
              event.preventDefault();
              choose(i);
            },
          },
        },
        make('b', {}, app.report.label(row), make('small', {}, ` ${app.report.beside(row)}`)),
        make('span', {}, where ? `${where.name}: ${where.text(row)}` : app.report.target.text(row)),
      ),
    );
    if (!found.length && input.value.trim())
      items.push(make('li', { class: 'empty' }, 'No row found'));
    list.replaceChildren(...items);
    list.hidden = !items.length;
    input.setAttribute('aria-expanded', String(items.length > 0));
    mark();
  };

  input.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, app.report.n > 5000 ? 120 : 0);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (list.hidden) return show();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      active = (active + step + found.length) % Math.max(found.length, 1);
      mark();
    } else if (event.key === 'Enter' && !event.isComposing) {
      if (list.hidden || waiting) show();
      choose(Math.min(active, found.length - 1));
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      close();
      input.value = '';
    }
  });
  input.addEventListener('blur', close);
}
