// Columns of the report: values as text, as numbers, and statistics.

const MISSING_TEXT = '–';
const LONGEST_TEXT = 200;
const collator = new Intl.Collator(undefined, {
  numeric: true,
  sensitivity: 'base',
});

function withMinus(text) {
  return text.replaceAll('-', '−');
}

/** Five significant digits, or all before the point, without thousands separators. */
function formatNumber(value) {
  if (!Number.isFinite(value)) return MISSING_TEXT;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return withMinus(value.toExponential(2));
  if (Number.isInteger(value)) return withMinus(String(value));
  return withMinus(String(size >= 1e5 ? Math.round(value) : Number(value.toPrecision(5))));
}

/** Days since 1970 as a date, with the time if there is one. */
function formatDate(days) {
  const date = new Date(Math.floor(days * 86400 + 1e-3) * 1000);
  if (Number.isNaN(date.getTime())) return MISSING_TEXT;
  const text = date.toISOString();
  return Number.isInteger(days) ? text.slice(0, 10) : text.slice(0, 16).replace('T', ' ');
}

/** The shortest decimal that equals the number in single precision: 39.1, not 39.099998. */
function shortSingle(value) {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

function formatShare(share) {
  if (!Number.isFinite(share)) return MISSING_TEXT;
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '<0.1%';
  // Do not round to 100% if another class has 0.3%.
  if (percent > 99 && percent < 99.999) return percent > 99.9 ? '>99.9%' : `${percent.toFixed(1)}%`;
  return `${percent.toFixed(percent < 9.95 ? 1 : 0)}%`;
}

function formatCount(count) {
  return count.toLocaleString('en');
}

/** Truncated text for the screen. Downloads have the complete text. */
function short(text) {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text;
}

function plural(count, one, many = `${one}s`) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** A column of the report. */
class Column {
  constructor(raw, key) {
    Object.assign(this, raw);
    this.key = key;
    this.isNumber = raw.kind === 'number';
    this.format = raw.date ? formatDate : formatNumber;
    if (raw.kind === 'category') this.none = 256 ** raw.data.BYTES_PER_ELEMENT - 1;
  }

  isMissing(row) {
    if (this.isNumber) return Number.isNaN(this.data[row]);
    if (this.kind === 'category') return this.data[row] === this.none;
    return this.values[row] === null || this.values[row] === undefined;
  }

  /** The value as a string or a number; null if missing. */
  value(row) {
    if (this.isMissing(row)) return null;
    if (this.isNumber) return this.data[row];
    return this.kind === 'category' ? this.categories[this.data[row]] : this.values[row];
  }

  /** The value for a download, without excess digits of single precision. */
  plain(row) {
    const value = this.value(row);
    if (this.date && value !== null) return this.format(value);
    return this.data instanceof Float32Array && value !== null ? shortSingle(value) : value;
  }

  text(row) {
    const value = this.value(row);
    if (value === null) return MISSING_TEXT;
    return this.isNumber ? this.format(value) : short(String(value));
  }

  /** Quantiles, from a sample if there are many rows. They are only used for scales. */
  quantiles() {
    if (this.sorted === undefined) {
      const step = Math.max(1, Math.floor(this.data.length / 20000));
      const sample = [];
      for (let row = 0; row < this.data.length; row += step) {
        if (Number.isFinite(this.data[row])) sample.push(this.data[row]);
      }
      this.sorted = Float64Array.from(sample).sort();
    }
    const { sorted } = this;
    return (share) => (sorted.length ? sorted[Math.round(share * (sorted.length - 1))] : NaN);
  }

  /** The width of the middle 80%, which is the scale of differences. */
  spread() {
    const at = this.quantiles();
    return at(0.9) - at(0.1) || at(1) - at(0) || 1;
  }
}

/** The report, with methods for the page. */
class Report {
  constructor(header) {
    Object.assign(this, header);
    this.columns = header.columns.map((column, i) => new Column(column, `c${i}`));
    for (const key of ['target', 'prediction', 'outlier', 'error']) {
      this[key] = new Column(header[key], key);
    }
    this.isClassification = header.task === 'classification';
    // Show only the meaningful digits of results.
    this.outlier.format = (score) => {
      if (!Number.isFinite(score)) return MISSING_TEXT;
      const digits = Math.abs(score) < 1000 ? 1 : 0;
      return withMinus((Number(score.toFixed(digits)) || 0).toFixed(digits));
    };
    this.prediction.like = this.target; // use the same colors
    if (this.n_new) this.target.noneText = 'new, unknown';
    this.error.format = this.isClassification
      ? (error) => Math.abs(error).toFixed(3)
      : (error) => formatNumber(error < 1000 ? Number(error.toPrecision(3)) : Math.round(error));
    this.mistakes = this.isClassification ? this.findMistakes() : null;
    this.ranked = this.rankColumns();
  }

  /** Whether a row is a new row. New rows are last. */
  isNew(row) {
    return row >= this.n - this.n_new;
  }

  /** The position of a row in its table, which has either the training rows or the new rows. */
  position(row) {
    if (this.id_.positions) return this.id_.positions[row];
    return this.isNew(row) ? row - (this.n - this.n_new) : row;
  }

  /** The label of a row in the index or in the id column; null if it has none. */
  givenName(row) {
    return this.id_.values?.[row] ?? null;
  }

  /** The name of a row: its label, or its position in the table. */
  id(row) {
    const position = String(this.position(row));
    return this.givenName(row) ?? (this.isNew(row) ? `new ${position}` : position);
  }

  label(row) {
    const name = this.givenName(row) ?? String(this.position(row));
    return short(`${this.isNew(row) ? 'new ' : ''}${this.id_.name} ${name}`);
  }

  /** The position of a row if it differs from its name. */
  beside(row) {
    const position = String(this.position(row));
    const name = this.givenName(row);
    return name === null || name === position ? '' : `position ${position}`;
  }

  isMistake(row) {
    return this.mistakes !== null && this.mistakes.data[row] === 1;
  }

  findMistakes() {
    const data = new Uint8Array(this.n);
    for (let row = 0; row < this.n; row++) {
      if (this.prediction.isMissing(row) || this.isNew(row)) data[row] = 255;
      else data[row] = this.prediction.data[row] === this.target.data[row] ? 0 : 1;
    }
    const raw = {
      name: 'right or wrong',
      kind: 'category',
      categories: ['right', 'wrong'],
      data,
      ground: 0,
      firstColor: 4,
    };
    return new Column(raw, 'mistakes');
  }

  /** All columns: the most important first, then the others in their original order. */
  rankColumns() {
    const importance = new Map();
    for (const feature of this.features) {
      if (feature.column === null || feature.importance === null) continue;
      importance.set(feature.column, (importance.get(feature.column) ?? 0) + feature.importance);
    }
    const weight = (i) => importance.get(i) ?? (this.columns[i].feature === false ? -1 : 0);
    return this.columns
      .map((_, i) => i)
      .sort((a, b) => weight(b) - weight(a) || a - b)
      .map((i) => this.columns[i]);
  }

  neighbors(row) {
    const { k, rows, proximity } = this.neighbors_;
    const found = [];
    for (let place = row * k; place < (row + 1) * k; place++) {
      if (rows[place] >= 0) {
        found.push({ row: rows[place], proximity: proximity[place], place });
      }
    }
    return found;
  }

  /** The score of a boosted model for a row, with the contributions; null for other models. */
  contributions(row) {
    const found = this.contributions_;
    if (!found) return null;
    const output = found.outputs[row];
    const side = (number) => {
      const rows = [];
      const first = (2 * row + number) * found.k;
      for (let place = first; place < first + found.k; place++) {
        if (found.rows[place] >= 0) rows.push({ row: found.rows[place], adds: found.adds[place] });
      }
      const at = 2 * row + number;
      return { rows, count: found.counts[at], total: found.totals[at] };
    };
    const [up, down] = [side(0), side(1)];
    return {
      up,
      down,
      total: up.total + down.total,
      score: found.scores[row],
      baseScore: found.base_scores[output],
      prediction: found.predictions ? found.predictions[row] : null,
      basePrediction: found.base_predictions ? found.base_predictions[output] : null,
      label: found.labels ? found.labels[output] : null,
      link: found.link,
    };
  }

  /** Why a row and its neighbor at `place` are similar: features with shares, and shared trees. */
  why(place) {
    if (!this.why_) return null;
    const { m, feature, percent, trees, n_trees: total } = this.why_;
    const none = 256 ** feature.BYTES_PER_ELEMENT - 1;
    const features = [];
    for (let i = place * m; i < (place + 1) * m; i++) {
      if (feature[i] !== none && percent[i] > 0) {
        features.push({
          name: this.features[feature[i]].name,
          percent: percent[i],
        });
      }
    }
    return { features, trees: trees[place], total };
  }

  colorColumns() {
    const main = [this.target, this.prediction, this.outlier, this.error, this.mistakes];
    main.push(this.groups); // the groups A and B, if they are set
    return [...main.filter(Boolean), ...this.columns.filter((column) => column.kind !== 'text')];
  }

  /** The name of a column for the reader. */
  nameOf(column) {
    if (column === this.target) return `${column.name} (true)`;
    if (column === this.prediction) return `${this.target.name} (predicted)`;
    if (column === this.outlier) return 'outlier score';
    if (column === this.error) return 'error';
    return short(column.name);
  }
}

function reportOf(header) {
  // Rename these fields, because the class has methods with the same names.
  const { id, neighbors, why, contributions, ...rest } = header;
  return new Report({
    ...rest,
    id_: id,
    neighbors_: neighbors,
    why_: why,
    contributions_: contributions,
  });
}
