// Downloads. Text is saved unchanged, with a warning if a spreadsheet may run it as a formula.

const FORMULA_START = /^ *[=+\-@\t\r\n]/;
const PLAIN_NUMBER = /^ *[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)? *$/i;

/** Whether a spreadsheet would run a text as a formula. */
function isLikeFormula(value) {
  return typeof value === 'string' && FORMULA_START.test(value) && !PLAIN_NUMBER.test(value);
}

/** One cell of a CSV file (RFC 4180). */
function csvCell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  const text = String(value);
  return /[",\r\n\t]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Show a note on formulas beside the button of a download. */
function tellFormulas(place, count) {
  place.parentElement.querySelector('.formula-note')?.remove();
  if (!count) return;
  place.after(
    make(
      'p',
      { class: 'note formula-note', role: 'status' },
      `${plural(count, 'cell')} of this file ${count === 1 ? 'begins' : 'begin'} like a formula, and a spreadsheet may run ` +
        `${count === 1 ? 'it' : 'them'}. To prevent this, import the columns as text.`,
    ),
  );
}

function saveBlob(blob, name) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Save a table, and return the number of cells that look like formulas. */
function saveCsv(name, header, items, cells) {
  let formulas = 0;
  const line = (values) => {
    formulas += values.filter(isLikeFormula).length;
    return `${values.map(csvCell).join(',')}\r\n`;
  };
  const parts = ['\ufeff', line(header)]; // Excel requires the byte order mark for UTF-8
  let part = '';
  for (const item of items) {
    part += line(cells(item));
    if (part.length > 1 << 20) {
      parts.push(part);
      part = '';
    }
  }
  parts.push(part);
  saveBlob(new Blob(parts, { type: 'text/csv;charset=utf-8' }), `${name}.csv`);
  return formulas;
}

/** Save all data of each row except its neighbors, in the original order. */
function saveAllRows(report) {
  const known = [report.target, report.prediction, report.outlier, report.error];
  const isNamed = report.id_.values !== null;
  const names = [
    report.id_.name,
    ...(isNamed ? ['position'] : []),
    ...report.columns.map((column) => column.name),
    report.target.name,
    `${report.target.name} (predicted)`,
    'outlier score',
    'error',
    'map x',
    'map y',
  ];
  const columns = [...report.columns, ...known];
  return saveCsv('rows', names, Array(report.n).keys(), (row) => [
    report.id(row),
    ...(isNamed ? [report.position(row)] : []),
    ...columns.map((column) => column.plain(row)),
    shortSingle(report.embedding.x[row]),
    shortSingle(report.embedding.y[row]),
  ]);
}

/** Save the current view of the map as an image. */
function saveImage(plot) {
  const { canvas, overlay } = plot;
  const picture = make('canvas', {
    width: canvas.width,
    height: canvas.height,
  });
  const context = picture.getContext('2d');
  context.fillStyle = getComputedStyle(document.body).getPropertyValue('--plot').trim();
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(canvas, 0, 0);
  context.scale(canvas.width / plot.width, canvas.height / plot.height);
  for (const shape of overlay.children) {
    const style = getComputedStyle(shape);
    const number = (name) => Number(shape.getAttribute(name));
    context.strokeStyle = style.stroke;
    context.lineWidth = parseFloat(style.strokeWidth);
    context.globalAlpha = Number(style.strokeOpacity);
    context.beginPath();
    if (shape.tagName === 'line') {
      context.moveTo(number('x1'), number('y1'));
      context.lineTo(number('x2'), number('y2'));
    } else if (shape.tagName === 'path') {
      context.stroke(new Path2D(shape.getAttribute('d')));
      continue;
    } else context.arc(number('cx'), number('cy'), number('r'), 0, 2 * Math.PI);
    context.stroke();
  }
  picture.toBlob((blob) => blob && saveBlob(blob, 'map.png'));
}
