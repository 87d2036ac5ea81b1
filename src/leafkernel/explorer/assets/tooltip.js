// The tooltip of the row under the mouse. It covers neither this row nor the rows with a ring.

const TIP_GAP = 16;
const RING = 13; // distance from a point that must stay visible

function fillTooltip(app, tip, row) {
  const { report } = app;
  const top = report.ranked.filter((column) => column.feature !== false).slice(0, 4);
  const known = [report.target, report.prediction];
  if (![...known, ...top].includes(app.color)) top.push(app.color);
  const lines = [...known, ...top].map((column) => [
    make('dt', {}, report.nameOf(column)),
    make('dd', {}, column.text(row)),
  ]);
  const beside = report.beside(row);
  tip.replaceChildren(
    make('b', {}, report.label(row)),
    beside ? make('small', {}, ` ${beside}`) : '',
    make('dl', {}, lines.flat()),
  );
}

/** The nearest free position for a box of this size; null if there is none. */
function freePlace(plot, [x, y], width, height, spots) {
  const [right, bottom] = [plot.width - width - 4, plot.height - height - 4];
  if (right < 4 || bottom < 4) return null;
  const clamp = (value, most) => Math.min(Math.max(value, 4), most);
  const lefts = [x + TIP_GAP, x - TIP_GAP - width, 4, right];
  const tops = [y - height / 2, y + TIP_GAP, y - TIP_GAP - height, 4, bottom];
  for (let i = 1; i < 8; i++) {
    lefts.push(4 + ((right - 4) * i) / 8);
    tops.push(4 + ((bottom - 4) * i) / 8);
  }
  let [best, found] = [Infinity, null];
  for (const left of lefts.map((value) => clamp(value, right))) {
    for (const top of tops.map((value) => clamp(value, bottom))) {
      const covers = spots.some(
        ([sx, sy]) =>
          sx > left - RING &&
          sx < left + width + RING &&
          sy > top - RING &&
          sy < top + height + RING,
      );
      if (covers) continue;
      const far = Math.hypot(left + width / 2 - x, top + height / 2 - y);
      if (far < best) [best, found] = [far, [left, top]];
    }
  }
  return found;
}

/** Show the tooltip of a row, or hide it if there is no row or no room. */
function showTooltip(app, row, spot) {
  const tip = byId('tooltip');
  tip.hidden = row < 0;
  tip.classList.remove('brief');
  if (row < 0) return;
  fillTooltip(app, tip, row);
  const spots = [spot, ...app.plot.ringed().map((other) => app.plot.position(other))];
  let place = freePlace(app.plot, spot, tip.offsetWidth, tip.offsetHeight, spots);
  if (!place) {
    tip.classList.add('brief'); // the name alone
    place = freePlace(app.plot, spot, tip.offsetWidth, tip.offsetHeight, spots);
  }
  tip.hidden = place === null;
  if (place) tip.style.transform = `translate(${place[0]}px, ${place[1]}px)`;
}
