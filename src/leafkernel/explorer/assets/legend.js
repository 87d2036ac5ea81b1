// The legend. Its buttons show single classes, so that classes can be told apart without color.

const SCALING_NAMES = { linear: 'Linear', log: 'Log', rank: 'Rank' };

function drawLegend(app) {
  const { scale } = app;
  byId('legend-title').textContent = app.report.nameOf(app.color);
  byId('legend').classList.toggle('some', app.shown.only !== null);
  byId('legend-body').replaceChildren(
    ...(scale.kind === 'number' ? rampLegend(app) : [classLegend(app)]),
  );
}

function rampLegend(app) {
  const { ends, range, ramp, scaling } = app.scale;
  const format = (value) => app.color.format(Number(value.toPrecision(4)));
  const shown = app.color.date ? app.color.format : format;
  const options = scalingsOf(app.color).map((name) =>
    make('option', { value: name, selected: name === scaling }, SCALING_NAMES[name]),
  );
  return [
    make(
      'div',
      { class: 'ramp-box' },
      make('div', {
        class: 'ramp',
        style: { background: `linear-gradient(to right, ${ramp.join(',')})` },
      }),
      make(
        'div',
        { class: 'ramp-ends' },
        ends.map((value) => make('span', {}, shown(value))),
      ),
    ),
    make(
      'label',
      { class: 'field scaling' },
      make('span', {}, 'Scale'),
      make(
        'select',
        { id: 'scaling', on: { change: (event) => app.rescale(event.target.value) } },
        options,
      ),
    ),
    make(
      'p',
      { class: 'note' },
      `${range}${app.color.missing ? `. Gray: ${app.color.noneText ?? 'missing'}.` : ''}`,
    ),
  ];
}

function classLegend(app) {
  const entries = app.scale.entries.map(({ label, count, color }, code) =>
    button(
      [
        swatch(color),
        make('span', { class: 'name' }, short(label)),
        make('span', { class: 'value' }, formatCount(count)),
      ],
      () => app.isolate(code),
      {
        class: 'legend-entry',
        'aria-pressed': String(Boolean(app.shown.only?.has(code))),
        title: `Show only ${short(label)}. Click others to add them.`,
      },
    ),
  );
  return make('div', { class: 'entries' }, entries);
}
