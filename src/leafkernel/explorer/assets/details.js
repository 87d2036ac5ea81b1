// The selected row: its prediction, its neighbors, and why they are similar.

const SHARES_SHOWN = 6;

function rowButton(app, row) {
  const { report } = app;
  return button(short(report.id(row)), () => app.open(row), {
    class: 'row-link',
    'data-go': String(row),
    title: ['Show', report.label(row), report.beside(row)].filter(Boolean).join(' '),
  });
}

function section(title, ...content) {
  return make('section', {}, make('h3', {}, title), ...content);
}

function renderNoRow(app) {
  const { notes } = app.report;
  return make(
    'div',
    { class: 'intro' },
    make('h2', {}, 'Choose a row'),
    make(
      'p',
      {},
      'Each point is a row of the table. Similar rows are close to each other. ',
      'Click a point to see its prediction, and the similar rows that it is based on.',
    ),
    make(
      'p',
      { class: 'muted' },
      'You can also search for a row, or choose one from the tables in the other tabs. ',
      'With the keyboard, press Tab to reach the map, and then use the arrow keys.',
    ),
    notes.length ? [make('h3', {}, 'Notes on the data'), noteList(notes)] : null,
  );
}

function noteList(notes) {
  return make(
    'ul',
    { class: 'note-list' },
    notes.map((note) => make('li', {}, note)),
  );
}

function renderDetails(app, row) {
  if (row < 0) return renderNoRow(app);
  const neighbors = app.report.neighbors(row);
  return make(
    'div',
    { class: 'details', 'data-row': String(row) },
    detailsHead(app, row, neighbors),
    predictionSection(app, row),
    contributionSection(app, row),
    neighborSection(app, row, neighbors),
    valueSection(app, row, neighbors),
  );
}

function detailsHead(app, row, neighbors) {
  const rows = [row, ...neighbors.map((neighbor) => neighbor.row)];
  return make(
    'div',
    { class: 'details-head' },
    make(
      'h2',
      { id: 'details-title', tabIndex: -1 },
      make(
        'span',
        { class: 'muted' },
        `${app.report.isNew(row) ? 'new ' : ''}${app.report.id_.name} `,
      ),
      short(app.report.givenName(row) ?? String(app.report.position(row))),
      make('small', {}, ` ${app.report.beside(row)}`),
    ),
    make(
      'div',
      { class: 'actions' },
      button('← Back', () => app.back(), {
        id: 'back',
        class: 'quiet',
        disabled: !app.canGoBack(),
      }),
      app.plot
        ? button('Zoom in', () => app.plot.zoomTo(rows), {
            id: 'zoom-to',
            class: 'quiet',
          })
        : null,
      button('Clear', () => app.select(-1), {
        id: 'clear',
        class: 'quiet',
        title: 'Esc',
      }),
    ),
  );
}

/** The prediction and the true value, as a few facts and the shares of the classes. */
function predictionSection(app, row) {
  const { report } = app;
  const { target, prediction, outlier, error } = report;
  const fact = (name, value, note, kind = '') =>
    make(
      'div',
      { class: `fact ${kind}` },
      make('dt', {}, name),
      make('dd', {}, value, note ? make('small', {}, note) : null),
    );
  const isNew = report.isNew(row);
  let verdict = null;
  if (isNew) verdict = 'by all trees';
  else if (prediction.isMissing(row)) {
    verdict = report.shares ? 'every tree was trained with it' : 'no neighbors';
  } else if (report.isClassification) verdict = report.isMistake(row) ? '✗ wrong' : '✓ correct';
  const score = outlier.value(row);
  const facts = make(
    'dl',
    { class: 'facts' },
    fact(
      // The prediction of a boosted model is shown below with its score.
      report.contributions_ ? 'From similar rows' : 'Predicted',
      prediction.text(row),
      verdict,
      report.isMistake(row) ? 'wrong' : '',
    ),
    fact('True', isNew ? 'unknown' : target.text(row), isNew ? 'a new row' : null),
    report.isClassification || isNew ? null : fact('Error', error.text(row)),
    isNew
      ? null
      : fact(
          'Outlier score',
          outlier.text(row),
          score > 10 ? '▲ deserves a look' : null,
          score > 10 ? 'wrong' : '',
        ),
  );
  return make('section', {}, facts, report.probabilities ? classShares(app, row) : null);
}

function shareText(report, row) {
  if (!report.shares) return 'from its neighbors';
  return report.isNew(row) ? 'by all trees' : 'out of bag';
}

function classShares(app, row) {
  const { report } = app;
  const { classes, data } = report.probabilities;
  const truth = String(report.target.value(row));
  const shares = classes.map((name, i) => ({
    name: String(name),
    share: data[row * classes.length + i],
  }));
  if (shares.some(({ share }) => Number.isNaN(share))) return null;
  shares.sort((a, b) => b.share - a.share);
  const shown = shares.filter(
    ({ name, share }, i) => name === truth || (i < SHARES_SHOWN && share > 0),
  );
  const lines = shown.map(({ name, share }) =>
    make(
      'li',
      {},
      make('span', { class: 'name' }, name, name === truth ? make('b', {}, ' (true)') : null),
      bar(share, app.classColor(name)),
      make('span', { class: 'value' }, formatShare(share)),
    ),
  );
  return make(
    'div',
    {},
    make('h3', {}, `Share of each class (${shareText(report, row)})`),
    make('ul', { class: 'bars' }, lines),
  );
}

/** The number of rows that a prediction is based on, if it was counted. */
function whoseText(report, row) {
  if (!report.neighbors_.makers) return null;
  const makers = report.neighbors_.makers[row];
  if (report.shares) return `Based on ${plural(makers, 'training row')}.`;
  return `${plural(makers, 'training row')} ${makers === 1 ? 'is' : 'are'} similar to it.`;
}

function nearestText(report, neighbors) {
  const all =
    neighbors.length === 1 ? 'The most similar row' : `The ${neighbors.length} most similar rows`;
  const verb = neighbors.length === 1 ? ['is', 'has'] : ['are', 'have'];
  if (!report.shares) return `${all} ${verb[0]} listed.`;
  const sum = neighbors.reduce((total, { proximity }) => total + proximity, 0);
  return `${all} ${verb[1]} a share of ${formatShare(sum)}.`;
}

function neighborSection(app, row, neighbors) {
  const { report } = app;
  if (!neighbors.length) {
    return section(
      'Most similar training rows',
      make('p', {}, 'No other row shares a leaf with this row.'),
    );
  }
  const told = [whoseText(report, row), nearestText(report, neighbors)].filter(Boolean).join(' ');
  const most = Math.max(...neighbors.map(({ proximity }) => proximity), 1e-12);
  const lines = neighbors.map(({ row: other, proximity, place }, i) => {
    const why = report.why(place);
    const text = report.target.text(other);
    const same = report.isNew(row) || text === report.target.text(row);
    const truth = report.isClassification && !same ? `≠ ${text}` : text;
    return make(
      'li',
      {
        'data-row': String(other),
        on: {
          mouseenter: () => app.point(other),
          mouseleave: () => app.point(-1),
        },
      },
      make(
        'div',
        { class: 'neighbor-line' },
        make('span', { class: 'rank' }, String(i + 1)),
        make('span', { class: 'point' }, swatch(app.rowColor(other)), rowButton(app, other)),
        make(
          'span',
          { class: report.isClassification && !same ? 'truth differs' : 'truth' },
          truth,
        ),
        bar(proximity / most),
        make(
          'span',
          { class: 'value' },
          report.shares ? formatShare(proximity) : formatNumber(Number(proximity.toPrecision(3))),
        ),
      ),
      why ? whyLine(why) : null,
    );
  });
  return section(
    report.shares ? 'Rows behind this prediction' : 'Most similar training rows',
    make('p', { class: 'muted' }, told),
    make(
      'div',
      { class: 'neighbor-line neighbor-head', 'aria-hidden': 'true' },
      make('span', {}),
      make('span', {}, report.id_.name),
      make('span', {}, report.target.name),
      make('span', {}, report.shares ? 'share' : 'proximity'),
      make('span', { class: 'value' }),
    ),
    make('ol', { class: 'neighbors', id: 'neighbors' }, lines),
    report.why_
      ? make(
          'p',
          { class: 'note' },
          'Percentages show how much each feature contributes to the similarity of the two rows. ',
          'Dots have the colors of the map.',
        )
      : null,
    report.shares && report.why_
      ? make('p', { class: 'note', id: 'why-share' }, shareReason(report, row))
      : null,
  );
}

/** Why the neighbors are not sorted by the number of shared trees. */
function shareReason(report, row) {
  const trees = report.isNew(row)
    ? 'Only trees that were trained with the neighbor count.'
    : 'Only trees that were trained with the neighbor and not with this row count.';
  return (
    'A neighbor with fewer shared trees can have a larger share. In each tree, the training rows in the leaf share ' +
    'one vote, in proportion to their weight in the bootstrap sample. So a small leaf counts more than a large leaf. ' +
    trees
  );
}

function whyLine({ features, trees, total }) {
  const parts = features.flatMap(({ name, percent }, i) => [
    i ? ', ' : '',
    make('span', { class: 'feature' }, name),
    ` ${percent}%`,
  ]);
  return make(
    'div',
    { class: 'why' },
    parts.length ? ['similar in ', ...parts, ' · '] : null,
    `same leaf in ${formatCount(trees)} of ${plural(total, 'tree')}`,
  );
}
