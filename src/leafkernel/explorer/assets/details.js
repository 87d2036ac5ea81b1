// The selected row: what the forest said of it, from whom, and why they are alike.

const SHARES_SHOWN = 6;

function rowButton(app, row) {
  return button(app.report.id(row), () => app.open(row), {
    class: 'row-link',
    'data-go': String(row),
    title: `Show ${app.report.label(row)}`,
  });
}

function section(title, ...content) {
  return make('section', {}, make('h3', {}, title), ...content);
}

function renderNoRow() {
  return make(
    'div',
    { class: 'intro' },
    make('h2', {}, 'Choose a row'),
    make(
      'p',
      {},
      'Each point is a row of the table. Points are near each other where the forest treats their rows alike. ',
      'Click one to see which rows its prediction came from, and why.',
    ),
    make(
      'p',
      { class: 'muted' },
      'Or search for one, or start from a table in the tabs above. ',
      'With the keyboard: Tab to the map, then the arrow keys.',
    ),
  );
}

function renderDetails(app, row) {
  if (row < 0) return renderNoRow();
  const neighbors = app.report.neighbors(row);
  return make(
    'div',
    { class: 'details', 'data-row': String(row) },
    detailsHead(app, row, neighbors),
    predictionSection(app, row),
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
      make('span', { class: 'muted' }, `${app.report.id_.name} `),
      app.report.id(row),
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
        ? button('Zoom to it', () => app.plot.zoomTo(rows), {
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

/** The prediction beside the truth, as a few facts and the classes' shares. */
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
  let verdict = null;
  if (prediction.isMissing(row)) {
    verdict = report.shares ? 'every tree had seen it in training' : 'no neighbors';
  } else if (report.isClassification) verdict = report.isMistake(row) ? '✗ wrong' : '✓ right';
  const score = outlier.value(row);
  const facts = make(
    'dl',
    { class: 'facts' },
    fact('Predicted', prediction.text(row), verdict, report.isMistake(row) ? 'wrong' : ''),
    fact('True', target.text(row)),
    report.isClassification ? null : fact('Error', error.text(row)),
    fact(
      'Outlier score',
      outlier.text(row),
      score > 10 ? '▲ deserves a look' : null,
      score > 10 ? 'wrong' : '',
    ),
  );
  return make('section', {}, facts, report.probabilities ? classShares(app, row) : null);
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
    make('h3', {}, `Share of each class, ${report.shares ? 'out of bag' : 'by its neighbors'}`),
    make('ul', { class: 'bars' }, lines),
  );
}

/** How many rows a prediction came from, where that was counted. */
function whoseText(report, row) {
  if (!report.neighbors_.makers) return null;
  const makers = report.neighbors_.makers[row];
  if (report.shares) return `Made by ${plural(makers, 'training row')}.`;
  return `${plural(makers, 'training row')} ${makers === 1 ? 'has' : 'have'} some proximity to it.`;
}

function nearestText(report, neighbors) {
  const all = neighbors.length === 1 ? 'The nearest one' : `The ${neighbors.length} nearest`;
  const verb = neighbors.length === 1 ? ['is', 'makes'] : ['are', 'make'];
  if (!report.shares) return `${all} ${verb[0]} shown.`;
  const sum = neighbors.reduce((total, { proximity }) => total + proximity, 0);
  return `${all}, shown here, ${verb[1]} up ${formatShare(sum)} of the prediction.`;
}

function neighborSection(app, row, neighbors) {
  const { report } = app;
  if (!neighbors.length) {
    return section(
      'Nearest training rows',
      make('p', {}, 'No other row shares a leaf with this one.'),
    );
  }
  const told = [whoseText(report, row), nearestText(report, neighbors)].filter(Boolean).join(' ');
  const most = Math.max(...neighbors.map(({ proximity }) => proximity), 1e-12);
  const lines = neighbors.map(({ row: other, proximity, place }, i) => {
    const why = report.why(place);
    const same = report.target.text(other) === report.target.text(row);
    const truth =
      report.isClassification && !same
        ? `≠ ${report.target.text(other)}`
        : report.target.text(other);
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
        rowButton(app, other),
        make(
          'span',
          { class: report.isClassification && !same ? 'truth differs' : 'truth' },
          swatch(app.classColor(report.target.text(other))),
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
    report.shares ? 'Who made this prediction' : 'Nearest training rows',
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
          'Percents: how much each feature decides, of all that keeps the two rows together in the trees.',
        )
      : null,
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
    parts.length ? ['alike in ', ...parts, ' · '] : null,
    `same leaf in ${formatCount(trees)} of ${plural(total, 'tree')}`,
  );
}
