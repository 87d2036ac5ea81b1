// What a proximity is, in plain words, and the words and keys of this page.

function renderAbout(app) {
  const { report } = app;
  const paragraph = (...text) => make('p', {}, ...text);
  const shares = report.shares
    ? [
        'Here a neighbor’s proximity is its ',
        make('b', {}, 'share of the prediction'),
        ': take the trees that did not see the row in training, look up who else is in its leaf in each, ',
        'and average. The shares of all training rows sum to one, and the targets averaged with these shares are ',
        'the forest’s own out-of-bag prediction, exactly. So “who made this prediction” is not a guess.',
      ]
    : [
        'Here a proximity is a number that grows with the trees in which two rows end in the same leaf ',
        `(weights “${report.scheme}”). It tells who is alike to the forest; it is not a share of the prediction.`,
      ];
  return make(
    'div',
    { class: 'prose' },
    make('h2', {}, 'What is a proximity?'),
    paragraph(
      'A decision tree asks a row a few questions about its values and puts it into a leaf. Two rows in the same leaf ',
      'gave the same answers to the questions that mattered for ',
      make('b', {}, report.target.name),
      '. A forest has many trees; the more of them put two rows together, the nearer the two are. ',
      'That is their proximity: similarity as the forest sees it. Columns that say nothing about the target have no weight.',
    ),
    paragraph(...shares),
    report.contributions_
      ? paragraph(
          make('b', {}, 'Why the model gave this score'),
          ': a boosted model adds up small corrections, and each correction is made from the residuals of training ',
          'rows. So its score is a base score plus a signed part of each training row, exactly. Rows that push the ',
          'score up and rows that push it down are listed with their parts.',
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
      'A filter is one or more conditions: ',
      make('kbd', {}, 'age > 60 and island = Dream'),
      '. Signs are > < >= <= = != and the words “contains”, “is missing”, “is not missing”, “and”, “or”. ',
      'Put a name or a value in quotes if it has “and” or “or” in it. You can also filter by “predicted”, “error”, ',
      '“outlier score” and “position”. A missing value fulfills no condition but “is missing”. ',
      'Keep the rows that a filter, the lasso or the legend shows as group A or B to compare them.',
    ),
    make('h3', {}, 'Words used here'),
    make(
      'dl',
      { class: 'glossary' },
      ...[
        ...(report.shares
          ? [
              [
                'Out of bag',
                'Said by trees that had not seen the row in training: an honest test without a second table.',
              ],
            ]
          : []),
        [
          'Error',
          report.isClassification
            ? 'One minus the share of the true class: 0 is sure and right, 1 is sure and wrong.'
            : 'How far the prediction is from the true value.',
        ],
        [
          'Outlier score',
          'How unlike its own kind a row is, against what is usual there. Above 10 deserves a look.',
        ],
        ['Prototype', 'A typical row: most of its neighbors are of its own kind.'],
      ].flatMap(([word, meaning]) => [make('dt', {}, word), make('dd', {}, meaning)]),
    ),
    make('h3', {}, 'Keys'),
    make(
      'dl',
      { class: 'glossary keys' },
      ...[
        ['/', 'search'],
        ['arrows', 'on the map: go to the nearest row in that direction'],
        ['+ − 0', 'zoom in, zoom out, show everything'],
        ['Esc', 'clear the selection, or leave the lasso'],
      ].flatMap(([key, meaning]) => [
        make('dt', {}, make('kbd', {}, key)),
        make('dd', {}, meaning),
      ]),
    ),
    make(
      'p',
      { class: 'note' },
      `Made with leafkernel ${report.version}. The page holds the data shown and loads nothing from the network: ` +
        'who has the file has the rows.',
    ),
  );
}
