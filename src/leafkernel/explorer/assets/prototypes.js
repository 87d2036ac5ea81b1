// The tab with prototypes: a typical row of each class or group, and the spread of its neighbors.

const PROTOTYPE_LINES = 10;

function renderPrototypes(app) {
  const { report } = app;
  const rank = new Map(report.ranked.map((column, i) => [column, i]));
  const place = ({ column }) => rank.get(report.columns[column]);
  const isLong = report.prototypes.some(({ features }) => features.length > PROTOTYPE_LINES);
  const toggle = () => {
    app.allLines = !app.allLines;
    app.renderTab('prototypes');
    byId('show-lines').focus();
  };
  const cards = report.prototypes.map((prototype) =>
    make(
      'article',
      { class: 'card' },
      make(
        'h3',
        {},
        swatch(app.classColor(String(prototype.label))),
        String(prototype.label),
        make('small', {}, plural(prototype.size, 'row')),
      ),
      make(
        'p',
        { class: 'muted' },
        `${report.id_.name} `,
        rowButton(app, prototype.row),
        prototype.rows > 0
          ? ` and ${plural(prototype.rows, 'neighbor')} of its ${report.isClassification ? 'class' : 'group'}`
          : null,
      ),
      make(
        'table',
        { 'aria-label': `Prototype of ${prototype.label}` },
        make(
          'tbody',
          {},
          [...prototype.features]
            .sort((a, b) => place(a) - place(b))
            .slice(0, app.allLines ? Infinity : PROTOTYPE_LINES)
            .map((feature) => prototypeLine(report, feature)),
        ),
      ),
    ),
  );
  return panel(
    'Prototypes',
    'A typical row of each ' +
      (report.isClassification
        ? 'class: the row with the most neighbors of its class. '
        : 'quarter of the target: the row with the most neighbors of its quarter. ') +
      'For numbers, the table shows the median and the quartiles of these neighbors. The band shows the quartiles ' +
      'within the range of the column. For categories, it shows the most frequent category and its share.',
    make(
      'div',
      { class: 'pager' },
      make('span', {}, plural(cards.length, 'prototype')),
      isLong
        ? button(app.allLines ? 'Show fewer columns' : 'Show all columns', toggle, {
            id: 'show-lines',
            class: 'quiet',
          })
        : null,
      cards.length
        ? button(
            'Download CSV',
            (event) => {
              tellFormulas(event.target.closest('.pager'), savePrototypes(report));
            },
            { class: 'quiet download' },
          )
        : null,
    ),
    make('div', { class: 'cards' }, cards),
  );
}

function prototypeLine(report, { column: index, middle, low, high, value, share }) {
  const column = report.columns[index];
  const name = make('th', { scope: 'row' }, column.name);
  if (!column.isNumber) {
    const text = String(column.categories[value] ?? MISSING_TEXT);
    return make(
      'tr',
      {},
      name,
      make('td', {}, bar(share)),
      make(
        'td',
        { class: 'number', title: text },
        `${text} `,
        make('small', {}, formatShare(share)),
      ),
    );
  }
  const at = column.quantiles();
  const place = (number) => {
    const share = (number - at(0)) / (at(1) - at(0) || 1);
    return `${Math.min(Math.max(share, 0), 1) * 100}%`;
  };
  const range = make(
    'span',
    { class: 'range', 'aria-hidden': 'true' },
    make('span', {
      class: 'band',
      style: { left: place(low), right: `calc(100% - ${place(high)})` },
    }),
    make('span', { class: 'dot', style: { left: place(middle) } }),
  );
  return make(
    'tr',
    {},
    name,
    make('td', {}, range),
    make(
      'td',
      { class: 'number' },
      `${column.format(middle)} `,
      make('small', {}, `${column.format(low)} to ${column.format(high)}`),
    ),
  );
}

function savePrototypes(report) {
  const lines = report.prototypes.flatMap((prototype) =>
    prototype.features.map((feature) => ({ prototype, feature })),
  );
  const names = [
    report.target.name,
    'size',
    report.id_.name,
    'column',
    'middle',
    'low',
    'high',
    'value',
    'share',
  ];
  return saveCsv('prototypes', names, lines, ({ prototype, feature }) => {
    const column = report.columns[feature.column];
    const value = column.isNumber ? null : column.categories[feature.value];
    const { middle, low, high, share } = feature;
    return [
      prototype.label,
      prototype.size,
      report.id(prototype.row),
      column.name,
      middle,
      low,
      high,
      value,
      share,
    ];
  });
}
