// Files to keep. A spreadsheet runs text that starts like a formula, so such text is defused.

const FORMULA_START = /^ *[=+\-@\t\r\n]/;
const PLAIN_NUMBER = /^ *[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)? *$/i;

/** One cell of a CSV file (RFC 4180). Numbers are never touched; text like a formula gets an apostrophe. */
function csvCell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  if (typeof value === 'number') return String(value);
  let text = String(value).replaceAll('\0', ''); // which no CSV may hold
  if (FORMULA_START.test(text) && !PLAIN_NUMBER.test(text)) text = `'${text}`;
  return /[",\r\n\t]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

function saveBlob(blob, name) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveCsv(name, header, items, cells) {
  const line = (values) => `${values.map(csvCell).join(',')}\r\n`;
  const parts = ['\ufeff', line(header)]; // the mark tells Excel that the text is UTF-8
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
}

/** Everything the page knows of each row but its neighbors, in the file's order. */
function saveAllRows(report) {
  const known = [report.target, report.prediction, report.outlier, report.error];
  const names = [
    report.id_.name,
    ...report.columns.map((column) => column.name),
    report.target.name,
    `${report.target.name} (predicted)`,
    'outlier score',
    'error',
    'map x',
    'map y',
  ];
  const columns = [...report.columns, ...known];
  saveCsv('rows', names, Array(report.n).keys(), (row) => [
    report.id_.values ? report.id_.values[row] : row,
    ...columns.map((column) => column.plain(row)),
    shortSingle(report.embedding.x[row]),
    shortSingle(report.embedding.y[row]),
  ]);
}

/** The map as it is seen, with the selected row's lines. */
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
    } else context.arc(number('cx'), number('cy'), number('r'), 0, 2 * Math.PI);
    context.stroke();
  }
  picture.toBlob((blob) => blob && saveBlob(blob, 'map.png'));
}
