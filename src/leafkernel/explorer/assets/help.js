// The help tab: proximities, filters, terms and keyboard shortcuts.

function renderAbout(app) {
  const { report } = app;
  const paragraph = (...text) => make('p', {}, ...text);
  const shares = report.shares
    ? [
        'On this page, the proximity of a neighbor is its ',
        make('b', {}, 'share of the prediction'),
        '. Only trees that were not trained with the row are used. In each of them, the training rows in the same leaf ',
        'share one vote. The shares of all training rows sum to one. The average of their targets, weighted by these ',
        'shares, is exactly the out-of-bag prediction of the forest.',
      ]
    : [
        'On this page, a proximity increases with the number of trees in which two rows share a leaf ',
        `(weight scheme “${report.scheme}”). It measures similarity. It is not a share of the prediction.`,
      ];
  return make(
    'div',
    { class: 'prose' },
    make('h2', {}, 'What is a proximity?'),
    paragraph(
      'A decision tree asks a few questions about the values of a row, and so assigns it to a leaf. Two rows in the ',
      'same leaf have the same answers to the questions that help to predict ',
      make('b', {}, report.target.name),
      '. A forest has many trees. The more often two rows share a leaf, the larger is their proximity. ',
      'Columns that do not help to predict the target have little influence.',
    ),
    paragraph(...shares),
    report.contributions_
      ? paragraph(
          make('b', {}, 'Contributions to the score'),
          ': a boosted model adds up many small corrections. Each correction is computed from the residuals of ',
          'training rows. So the score is exactly a base score plus a positive or negative contribution of each ',
          'training row. The page lists the rows with the largest contributions in each direction.',
        )
      : null,
    make('h3', {}, 'The map'),
    paragraph(
      make('b', {}, report.embedding.label),
      '. ',
      report.embedding.about,
      report.n_new ? ` New rows are diamonds, placed ${report.embedding.about_new}.` : '',
    ),
    make('h3', {}, 'Filters and groups'),
    paragraph(
      'A filter has one or more conditions, for example ',
      make('kbd', {}, 'age > 60 and island = Dream'),
      '. Use > < >= <= = != and the words “contains”, “is missing”, “is not missing”, “and”, “or”. ',
      'Put names and values that contain “and” or “or” in quotes. You can also filter by “predicted”, “error”, ',
      '“outlier score” and “position”. A missing value matches only “is missing”. ',
      'To compare two groups of rows, select rows with a filter, the lasso or the legend, and set them as group A or B.',
    ),
    make('h3', {}, 'Terms'),
    make(
      'dl',
      { class: 'glossary' },
      ...[
        ...(report.shares
          ? [
              [
                'Out of bag',
                'Predicted only by trees that were not trained with the row. This is a fair test without a second table.',
              ],
            ]
          : []),
        [
          'Error',
          report.isClassification
            ? 'One minus the share of the true class: 0 is certain and correct, 1 is certain and wrong.'
            : 'The distance of the prediction from the true value.',
        ],
        [
          'Outlier score',
          report.isClassification
            ? 'High if a row is similar to few rows of its class. Scores above 10 deserve a look.'
            : 'High if a target is far from those of similar rows, or if features are unusual. Scores above 10 deserve a look.',
        ],
        [
          'Prototype',
          `A typical row of a ${report.isClassification ? 'class' : 'group'}: it has the most neighbors of this ${report.isClassification ? 'class' : 'group'}.`,
        ],
      ].flatMap(([word, meaning]) => [make('dt', {}, word), make('dd', {}, meaning)]),
    ),
    make('h3', {}, 'Keyboard shortcuts'),
    make(
      'dl',
      { class: 'glossary keys' },
      ...[
        ['/', 'search for a row'],
        ['arrows', 'on the map: go to the nearest row in this direction'],
        ['+ − 0', 'zoom in, zoom out, show all rows'],
        ['Esc', 'clear the selection, or cancel the lasso'],
      ].flatMap(([key, meaning]) => [
        make('dt', {}, make('kbd', {}, key)),
        make('dd', {}, meaning),
      ]),
    ),
    make(
      'p',
      { class: 'note' },
      `Made with leafkernel ${report.version}. This file contains the data that it shows. Share it only with people who may ` +
        'see the data. It loads nothing from the network.',
    ),
  );
}
