// The tab that compares two groups of rows.

const OTHERS = 'all other rows';

/** The masks of both groups. By default, B is all rows that are not in A. */
function groupMasks(app) {
  const { A, B } = app.groups;
  const first = A?.mask ?? null;
  if (!first) return [null, B?.mask ?? null];
  return [first, B?.mask ?? first.map((one) => 1 - one)];
}

/** A column with the group of each row, for coloring the map. */
function groupColumn(app) {
  const [a, b] = groupMasks(app);
  if (!a && !b) return null;
  const data = Uint8Array.from({ length: app.report.n }, (_, row) => {
    const inside = (a?.[row] ? 1 : 0) + (b?.[row] ? 2 : 0);
    return [3, 0, 1, 2][inside];
  });
  const raw = {
    name: 'groups A and B',
    kind: 'category',
    categories: ['A', 'B', 'both', 'neither'],
    data,
    ground: 3,
  };
  return new Column(raw, 'groups');
}

/** The predefined groups: rows shown, classes, mistakes, new rows. */
function groupChoices(app) {
  const { report } = app;
  const where = (text, test) => ({
    text,
    mask: () => Uint8Array.from({ length: report.n }, (_, row) => (test(row) ? 1 : 0)),
  });
  const choices = [];
  if (app.shown.mask()) {
    choices.push({
      text: app.shown.text(),
      name: 'the rows shown on the map',
      mask: () => app.shown.mask(),
    });
  }
  const { target, mistakes } = report;
  if (report.isClassification) {
    target.categories.slice(0, 50).forEach((name, code) => {
      choices.push(where(`${target.name} = ${name}`, (row) => target.data[row] === code));
    });
    choices.push(where('correct predictions', (row) => mistakes.data[row] === 0));
    choices.push(where('wrong predictions', (row) => mistakes.data[row] === 1));
  } else {
    const middle = target.quantiles()(0.5);
    const text = target.format(middle);
    choices.push(where(`${target.name} > ${text}`, (row) => target.data[row] > middle));
    choices.push(where(`${target.name} ≤ ${text}`, (row) => target.data[row] <= middle));
  }
  if (report.n_new) choices.push(where('new rows', (row) => report.isNew(row)));
  return choices;
}

function groupPicker(app, name) {
  const choices = groupChoices(app);
  const group = app.groups[name];
  const none = name === 'B' ? OTHERS : 'choose a group';
  const option = (text, value, selected) => make('option', { value, selected }, short(text));
  const select = make(
    'select',
    {
      id: `group-${name.toLowerCase()}`,
      on: {
        change: (event) => {
          const { value } = event.target;
          const choice = value === '' ? null : choices[Number(value)];
          if (value !== 'kept') {
            app.setGroup(name, choice && { text: choice.text, mask: choice.mask() });
          }
          byId(`group-${name.toLowerCase()}`).focus();
        },
      },
    },
    option(none, '', !group),
    group ? option(group.text, 'kept', true) : null,
    choices
      .map(({ text, name: called }, i) => [called ?? text, i, text])
      .filter(([, , text]) => text !== group?.text)
      .map(([text, i]) => option(text, String(i), false)),
  );
  const [a, b] = groupMasks(app);
  const mask = name === 'A' ? a : b;
  const count = mask ? mask.reduce((sum, one) => sum + one, 0) : 0;
  return make(
    'label',
    { class: 'group-choice' },
    make('b', {}, name),
    select,
    make('span', { class: 'muted' }, mask ? plural(count, 'row') : ''),
  );
}

function renderGroups(app) {
  const [a, b] = groupMasks(app);
  return panel(
    'Compare two groups',
    'Choose two groups here. You can also select rows with a filter, the lasso or the legend, and then click ' +
      '“Set as A” or “Set as B” above the map.',
    make('div', { class: 'group-choices' }, groupPicker(app, 'A'), groupPicker(app, 'B')),
    app.plot && a
      ? button('Color the map by group', () => app.colorBy('groups'), {
          id: 'color-groups',
          class: 'quiet',
        })
      : null,
    a && b ? differenceTable(app, a, b) : null,
  );
}

function differenceTable(app, a, b) {
  if (!a.includes(1) || !b.includes(1)) {
    return make('p', { class: 'empty' }, 'One of the groups has no rows.');
  }
  const found = compareGroups(app.report, a, b);
  const arrows = { '-1': ' ↓', 0: '', 1: ' ↑' };
  const name = (i) => app.report.nameOf(found[i].column);
  const table = new PagedTable({
    label: 'Differences between the groups',
    noun: 'column',
    file: 'groups',
    items: found.map((_, i) => i),
    fields: [
      {
        name: 'column',
        text: true,
        key: name,
        cell: name,
        csv: name,
      },
      {
        name: 'difference',
        key: (i) => found[i].found.difference,
        cell: (i) => [
          bar(found[i].found.difference),
          make(
            'span',
            { class: 'value' },
            `${found[i].found.difference.toFixed(2)}${arrows[found[i].found.sign ?? 0]}`,
          ),
        ],
        csv: (i) => found[i].found.difference,
      },
      ...['A', 'B'].map((group, side) => ({
        name: group,
        text: true,
        wraps: true,
        cell: (i) => {
          const { text, note } = found[i].found.sides[side];
          return [text, make('small', {}, note)];
        },
        csv: (i) => `${found[i].found.sides[side].text} (${found[i].found.sides[side].note})`,
      })),
    ],
  });
  table.element.classList.add('differences');
  return make(
    'div',
    {},
    table.element,
    make(
      'p',
      { class: 'note' },
      'The difference is 0 if both groups have the same values, and 1 if they are completely separated. ',
      'For numbers, it compares ranks, and ↑ means that A has larger values. The columns A and B show the median and ',
      'the quartiles. For categories, it is half the sum of the differences in shares. The columns A and B show the ',
      'category with the largest difference. Differences of small groups can be due to chance.',
    ),
  );
}
