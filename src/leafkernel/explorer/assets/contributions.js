// Contributions of training rows to the score of a boosted model.

/** A bar to the left or right of the center. It repeats the number beside it. */
function sideBar(share) {
  const width = `${Math.min(Math.abs(share), 1) * 50}%`;
  const style = share < 0 ? { width, right: '50%' } : { width, left: '50%' };
  return make('span', { class: 'bar side', 'aria-hidden': 'true' }, make('span', { style }));
}

function signedNumber(value) {
  const text = formatNumber(Number(value.toPrecision(3)));
  return value > 0 ? `+${text}` : text;
}

/** Numbers with three digits of the largest, or more so that the rounded numbers add up. */
function sumTexts(score, base, total) {
  const size = Math.max(Math.abs(score), Math.abs(base), Math.abs(total));
  const least = size > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(size)), 0), 12) : 2;
  const write = (digits) => [score, base, total].map((value) => value.toFixed(digits));
  const addsUp = (digits) => {
    const [all, first, rest] = write(digits).map(Number);
    return Math.abs(first + rest - all) < 0.5 * 10 ** -digits;
  };
  const digits = [least, least + 1, least + 2].find(addsUp) ?? least;
  return write(digits).map(withMinus);
}

function scoreSentence(found) {
  const [score, base, total] = sumTexts(found.score, found.baseScore, found.total);
  const rest = total.startsWith('−') ? `− ${total.slice(1)}` : `+ ${total}`;
  const what = found.link === 'identity' ? 'prediction' : 'score';
  return `${what} ${score} = base ${base} ${rest} from ${plural(found.up.count + found.down.count, 'row')}`;
}

/** The prediction for a score; null if the score is the prediction, or if it is unknown. */
function scoreMeaning(found) {
  if (found.prediction === null || found.link === 'identity') return null;
  const isShare = found.link === 'logistic' || found.link === 'softmax';
  const write = isShare ? formatShare : (value) => formatNumber(Number(value.toPrecision(4)));
  const what = isShare ? `Probability of ${short(found.label ?? '1')}` : 'Prediction';
  return `${what}: ${write(found.prediction)}; ${write(found.basePrediction)} with the base score alone.`;
}

function contributionSection(app, row) {
  const found = app.report.contributions(row);
  if (!found) return null;
  const meaning = scoreMeaning(found);
  const sentence = scoreSentence(found);
  const whole =
    found.label === null
      ? sentence[0].toUpperCase() + sentence.slice(1)
      : `Class ${short(found.label)}: ${sentence}`;
  const most = Math.max(
    ...[...found.up.rows, ...found.down.rows].map(({ adds }) => Math.abs(adds)),
    1e-300,
  );
  const start = app.report.isNew(row)
    ? ''
    : 'The model was trained with this row, and its own contribution is included. ';
  return section(
    'Contributions to the score',
    make('p', { id: 'score' }, make('b', {}, `${whole}.`)),
    meaning ? make('p', { id: 'score-meaning' }, meaning) : null,
    contributionList(app, found.up, 'up', most),
    contributionList(app, found.down, 'down', most),
    make(
      'p',
      { class: 'note' },
      `The base score and the contributions of all training rows add up to the score of the model exactly. ${start}`,
      'A contribution is based on the residuals of a row. It is not the change of the score without this row.',
    ),
  );
}

function contributionList(app, { rows, count, total }, word, most) {
  if (!count) return make('p', { class: 'muted' }, `No row pushes it ${word}.`);
  const shown = rows.length < count ? ` The ${rows.length} largest:` : '';
  const push = count === 1 ? 'pushes' : 'push';
  const lines = rows.map(({ row: other, adds }, i) =>
    make(
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
        make('span', { class: 'truth' }, app.report.target.text(other)),
        sideBar(adds / most),
        make('span', { class: 'value' }, signedNumber(adds)),
      ),
    ),
  );
  return make(
    'div',
    { class: 'push' },
    make(
      'p',
      { class: 'muted' },
      `${plural(count, 'row')} ${push} it ${word}, by ${signedNumber(total)} in total.${shown}`,
    ),
    make('ol', { class: 'neighbors pushes', id: `push-${word}` }, lines),
  );
}
