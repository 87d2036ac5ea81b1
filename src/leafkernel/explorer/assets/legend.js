// What the colors mean. Its buttons tell classes apart without color: one alone stands out.

function drawLegend(app) {
  const { scale } = app;
  byId('legend-title').textContent = app.report.nameOf(app.color);
  if (scale.kind === 'number') {
    const { low, high, isWhole, ramp } = scale;
    const range = isWhole ? 'All values' : 'The middle 96% of values';
    byId('legend-body').replaceChildren(
      make('div', {
        class: 'ramp',
        style: { background: `linear-gradient(to right, ${ramp.join(',')})` },
      }),
      make(
        'div',
        { class: 'ramp-ends' },
        make('span', {}, app.color.format(low)),
        make('span', {}, app.color.format(high)),
      ),
      make('p', { class: 'note' }, `${range}${app.color.missing ? '; gray: missing' : ''}`),
    );
    return;
  }
  const entries = scale.entries.map(({ label, count, color }, code) =>
    button(
      [
        swatch(color),
        make('span', { class: 'name' }, label),
        make('span', { class: 'value' }, formatCount(count)),
      ],
      () => app.isolate(code),
      {
        class: 'legend-entry',
        'aria-pressed': String(Boolean(app.only?.has(code))),
        title: `Show ${label} alone, or with others`,
      },
    ),
  );
  byId('legend-body').replaceChildren(make('div', { class: 'entries' }, entries));
  byId('legend').classList.toggle('some', app.only !== null);
}
