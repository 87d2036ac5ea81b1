// The values of the selected row and its neighbors, with differences marked.

const VALUES_SHOWN = 12;

/** The difference of a neighbor's value: a sign and a strength, visible without color. */
function difference(column, row, other) {
  const [mine, theirs] = [column.isMissing(row), column.isMissing(other)];
  if (mine && theirs) return null;
  if (mine || theirs) return { sign: '≠', strong: true };
  if (!column.isNumber) {
    return column.value(row) === column.value(other) ? null : { sign: '≠', strong: true };
  }
  const step = (column.data[other] - column.data[row]) / column.spread();
  if (Math.abs(step) < 0.1) return null;
  return { sign: step > 0 ? '↑' : '↓', strong: Math.abs(step) >= 0.4 };
}

function valueSection(app, row, neighbors) {
  const { report } = app;
  const columns = [report.target, ...report.ranked];
  const shown = app.allValues ? columns : columns.slice(0, VALUES_SHOWN + 1);
  const head = make(
    'tr',
    {},
    make('th', { scope: 'col' }, make('span', { class: 'visually-hidden' }, 'Column')),
    make('th', { scope: 'col', class: 'mine' }, 'This row'),
    neighbors.map(({ row: other }) => make('th', { scope: 'col' }, rowButton(app, other))),
  );
  const lines = shown.map((column) =>
    make(
      'tr',
      {},
      make(
        'th',
        { scope: 'row' },
        report.nameOf(column),
        column.feature !== false || column === report.target ? null : make('small', {}, 'not used'),
      ),
      make('td', { class: 'mine', title: column.text(row) }, column.text(row)),
      neighbors.map(({ row: other }) => {
        const isUnknown = column === report.target && report.isNew(row);
        const found = isUnknown ? null : difference(column, row, other);
        const title = column.text(other);
        if (!found) return make('td', { title }, title);
        const kind = found.strong ? 'differs strong' : 'differs';
        return make('td', { class: kind, title }, `${found.sign} ${title}`);
      }),
    ),
  );
  const rest = columns.length - VALUES_SHOWN - 1;
  const toggle = () => {
    app.allValues = !app.allValues;
    app.renderRow();
    byId('show-values')?.focus();
  };
  return section(
    'Comparison of values',
    scroller(
      'Comparison of values',
      make(
        'table',
        { class: 'values', id: 'values' },
        make('thead', {}, head),
        make('tbody', {}, lines),
      ),
    ),
    rest > 0
      ? button(
          app.allValues ? 'Show only the most important' : `Show all ${columns.length} columns`,
          toggle,
          {
            id: 'show-values',
            class: 'quiet',
          },
        )
      : null,
    make(
      'p',
      { class: 'note' },
      '↑ ↓ mark larger and smaller values than in this row. They are bold if the difference is large for this column. ',
      '≠ marks another value. No mark: the same or nearly the same value. –: missing.',
    ),
  );
}
