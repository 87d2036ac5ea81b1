// The SVG layer above the points: the selected row, its neighbors, and the new rows.

/** Diamonds around the new rows, as one path. */
function newMarks(plot) {
  const { n, n_new: count } = plot.report;
  const half = Math.max(5, plot.size * 0.9);
  let path = '';
  for (let row = n - count; row < n; row++) {
    const [x, y] = plot.position(row).map((value) => value.toFixed(1));
    path += `M${x} ${y}m0 ${-half}l${half} ${half}l${-half} ${half}l${-half} ${-half}z`;
  }
  return path;
}

/** Rings and lines of the selected row, its neighbors, and the highlighted row of a table. */
function drawOverlay(plot) {
  plot.overlay.setAttribute('viewBox', `0 0 ${plot.width} ${plot.height}`);
  const shapes = [];
  const shape = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    shapes.push(element);
  };
  if (plot.report.n_new) shape('path', { class: 'new-rows', d: newMarks(plot) });
  if (plot.selected >= 0) {
    const [x1, y1] = plot.position(plot.selected);
    const most = Math.max(...plot.neighbors.map(({ proximity }) => proximity), 1e-12);
    for (const { row, proximity } of plot.neighbors) {
      const [x2, y2] = plot.position(row);
      const width = (0.75 + (2.75 * proximity) / most).toFixed(2);
      shape('line', { class: 'tie', x1, y1, x2, y2, 'stroke-width': width });
      shape('circle', { class: 'neighbor', cx: x2, cy: y2, r: 7 });
    }
    shape('circle', { class: 'chosen', cx: x1, cy: y1, r: 11 });
  }
  if (plot.pointed >= 0) {
    const [cx, cy] = plot.position(plot.pointed);
    shape('circle', { class: 'pointed', cx, cy, r: 14 });
  }
  plot.overlay.replaceChildren(...shapes);
}
