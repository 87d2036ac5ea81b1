// The list of tabs, and the tabs with tables.

const TABS = [
  { key: 'row', name: 'Row' },
  { key: 'groups', name: 'Groups', render: renderGroups },
  { key: 'outliers', name: 'Outliers', render: renderOutliers },
  { key: 'mistakes', name: 'Mistakes', render: renderMistakes },
  { key: 'prototypes', name: 'Prototypes', render: renderPrototypes },
  { key: 'importances', name: 'Importance', render: renderImportances },
  { key: 'rows', name: 'All rows', render: renderAllRows },
  { key: 'new', name: 'New rows', render: renderNewRows, needs: (report) => report.n_new > 0 },
  { key: 'notes', name: 'Notes', render: renderNotes },
  { key: 'about', name: 'Help', render: renderAbout },
];

const VALUES_BESIDE = 6; // columns to show for outliers, mistakes and new rows

function panel(title, intro, ...content) {
  return make('div', {}, make('h2', {}, title), make('p', { class: 'muted' }, intro), ...content);
}

function rowField(app) {
  const { report } = app;
  return {
    name: report.id_.name,
    text: true,
    key: report.id_.values ? (row) => report.id(row) : null,
    cell: (row) => rowButton(app, row),
    csv: (row) => report.id(row),
  };
}

function positionField(report) {
  const position = (row) => report.position(row);
  return { name: 'position', key: position, cell: (row) => String(position(row)), csv: position };
}

function columnField(app, column, name = app.report.nameOf(column)) {
  return {
    name,
    text: !column.isNumber,
    key: (row) => column.value(row),
    cell: (row) => column.text(row),
    csv: (row) => column.plain(row),
  };
}

function rowTable(app, options) {
  return new PagedTable({
    onOpen: (row) => app.open(row),
    onPoint: (row) => app.point(row),
    ...options,
  }).element;
}

function rowsWhere(report, wanted) {
  const rows = [];
  for (let row = 0; row < report.n; row++) if (wanted(row)) rows.push(row);
  return rows;
}

function renderOutliers(app) {
  const { report } = app;
  const rows = rowsWhere(report, (row) => !report.outlier.isMissing(row));
  const high = rows.filter((row) => report.outlier.data[row] > 10).length;
  const about = report.isClassification
    ? 'Rows that are similar to few other rows of their class, by Breiman’s measure.'
    : 'Rows with a target far from the targets of similar rows, or with unusual features.';
  return panel(
    'Outliers',
    `${about} ` +
      `Scores above 10 deserve a look. ${plural(high, 'row')} ${high === 1 ? 'has' : 'have'} a score above 10.`,
    rowTable(app, {
      label: 'Outliers',
      file: 'outliers',
      items: rows,
      sort: { field: 1, down: true },
      empty: 'No outlier scores.',
      fields: [
        rowField(app),
        columnField(app, report.outlier, 'score'),
        columnField(app, report.target),
        columnField(app, report.prediction, 'predicted'),
        ...valueFields(app),
      ],
    }),
  );
}

/** Fields for the most important columns. */
function valueFields(app) {
  return app.report.ranked
    .filter((column) => column.feature !== false)
    .slice(0, VALUES_BESIDE)
    .map((column) => columnField(app, column));
}

/** The neighbors with the wrongly predicted class; for numbers, the nearest ones. */
function misleaders(report, row) {
  const predicted = report.prediction.text(row);
  return report
    .neighbors(row)
    .filter(({ row: other }) => !report.isClassification || report.target.text(other) === predicted)
    .slice(0, 3);
}

/** Links to rows, optionally with their targets. */
function rowLinks(app, neighbors, { withTarget }) {
  return neighbors.flatMap(({ row }, i) => [
    i ? ', ' : '',
    make(
      'span',
      {},
      rowButton(app, row),
      withTarget ? make('small', {}, ` (${app.report.target.text(row)})`) : null,
    ),
  ]);
}

function renderMistakes(app) {
  const { report } = app;
  const rows = report.isClassification
    ? rowsWhere(report, (row) => report.isMistake(row))
    : rowsWhere(report, (row) => !report.error.isMissing(row));
  const misled = {
    name: report.isClassification ? 'misled by' : 'nearest rows',
    text: true,
    wraps: true,
    cell: (row) => rowLinks(app, misleaders(report, row), { withTarget: !report.isClassification }),
    csv: (row) =>
      misleaders(report, row)
        .map(({ row: other }) => report.id(other))
        .join('; '),
  };
  const whose = report.shares ? 'The out-of-bag prediction' : 'The prediction from the neighbors';
  const intro = report.isClassification
    ? `${whose} is wrong for ${formatCount(rows.length)} of ${plural(report.n - report.n_new, 'row')}. ` +
      'The error is one minus the share of the true class. ' +
      '“Misled by” lists the most similar rows of the predicted class.'
    : 'All rows, the largest error first. The error is the distance of the prediction from the true value.';
  const title = report.isClassification ? 'Mistakes' : 'Largest errors';
  if (!rows.length) {
    const right = 'There are no mistakes: all predictions are correct.';
    return panel(title, report.isClassification ? right : 'No row has a prediction.');
  }
  return panel(
    title,
    intro,
    rowTable(app, {
      label: 'Mistakes',
      file: 'mistakes',
      items: rows,
      sort: { field: 3, down: true },
      fields: [
        rowField(app),
        columnField(app, report.target, 'true'),
        columnField(app, report.prediction, 'predicted'),
        columnField(app, report.error, 'error'),
        misled,
        ...valueFields(app),
      ],
    }),
  );
}

function renderImportances(app) {
  const { report } = app;
  const known = report.features.filter(({ importance }) => importance !== null);
  const total = known.reduce((sum, { importance }) => sum + importance, 0) || 1;
  const most = known.reduce((top, { importance }) => Math.max(top, importance), 1e-12);
  const items = known.map((_, i) => i);
  const table = new PagedTable({
    label: 'Importances',
    noun: 'feature',
    file: 'importances',
    items,
    sort: { field: 1, down: true },
    empty: 'This forest has no importances.',
    fields: [
      {
        name: 'feature',
        text: true,
        key: (i) => known[i].name,
        cell: (i) => known[i].name,
        csv: (i) => known[i].name,
      },
      {
        name: 'importance',
        key: (i) => known[i].importance,
        cell: (i) => [
          bar(known[i].importance / most),
          make('span', { class: 'value' }, formatShare(known[i].importance / total)),
        ],
        csv: (i) => known[i].importance,
      },
    ],
  });
  table.element.classList.add('importances');
  return panel(
    'Importance',
    'The share of each feature in the total gain of all splits in training. ' +
      'This measure favors features with many different values, and it is split between redundant features.',
    table.element,
  );
}

function renderAllRows(app) {
  const { report } = app;
  const many = report.ranked.length > VALUES_SHOWN && !app.allColumns;
  const columns = many ? report.ranked.slice(0, VALUES_SHOWN) : report.ranked;
  const toggle = () => {
    app.allColumns = !app.allColumns;
    app.renderTab('rows');
    byId('show-columns').focus();
  };
  return panel(
    'All rows',
    'The table with predictions, errors and outlier scores. The download also has the coordinates of the map.' +
      (report.columns.some(({ rounded }) => rounded)
        ? ' Some numbers are rounded to seven digits, because there are many rows.'
        : ''),
    make(
      'div',
      { class: 'actions' },
      button(
        'Download all rows and columns',
        (event) => tellFormulas(event.target.parentElement, saveAllRows(report)),
        { id: 'download-all', class: 'quiet' },
      ),
      report.ranked.length > VALUES_SHOWN
        ? button(many ? `Show all ${report.ranked.length} columns` : 'Show fewer columns', toggle, {
            id: 'show-columns',
            class: 'quiet',
          })
        : null,
    ),
    rowTable(app, {
      label: 'All rows',
      items: Array.from({ length: report.n }, (_, row) => row),
      fields: [
        {
          ...rowField(app),
          key: report.id_.values ? (row) => report.id(row) : (row) => row,
          text: Boolean(report.id_.values),
        },
        ...(report.id_.values ? [positionField(report)] : []),
        columnField(app, report.target),
        columnField(app, report.prediction, 'predicted'),
        columnField(app, report.error, 'error'),
        columnField(app, report.outlier, 'outlier score'),
        ...columns.map((column) => columnField(app, column)),
      ],
    }),
  );
}

function renderNewRows(app) {
  const { report } = app;
  const nearest = {
    name: 'nearest rows',
    text: true,
    wraps: true,
    cell: (row) => rowLinks(app, report.neighbors(row).slice(0, 3), { withTarget: true }),
    csv: (row) =>
      report
        .neighbors(row)
        .slice(0, 3)
        .map(({ row: other }) => report.id(other))
        .join('; '),
  };
  return panel(
    'New rows',
    'New rows with their predictions and the most similar training rows. ' +
      `On the map, they are diamonds, placed ${report.embedding.about_new}.`,
    rowTable(app, {
      label: 'New rows',
      file: 'new-rows',
      items: rowsWhere(report, (row) => report.isNew(row)),
      fields: [
        rowField(app),
        columnField(app, report.prediction, 'predicted'),
        nearest,
        ...valueFields(app),
      ],
    }),
  );
}

function renderNotes(app) {
  const { notes } = app.report;
  return panel(
    'Notes on the data',
    notes.length ? 'How the table was read and what to keep in mind.' : 'There are no notes.',
    noteList(notes),
  );
}
