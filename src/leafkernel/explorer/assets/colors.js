// Color-blind safe palettes for light and dark backgrounds.

// Eight colors of Okabe and Ito, the most visible on white first, and four of Paul Tol.
const CLASS_COLORS = {
  light: [
    '#0072b2',
    '#e08a00',
    '#009e73',
    '#cc5fa0',
    '#56b4e9',
    '#d55e00',
    '#3b3b3b',
    '#cdb800',
    '#882255',
    '#44aa99',
    '#332288',
    '#8a8a2b',
  ],
  dark: [
    '#3d9bdc',
    '#e69f00',
    '#00b386',
    '#e08cc0',
    '#8fd0f5',
    '#ee7733',
    '#e6e6e6',
    '#f0e442',
    '#c2557f',
    '#66c9b8',
    '#8f80e6',
    '#b5b54a',
  ],
};
// Grays for other categories, missing values and rows that are not shown.
const GRAY = { light: '#8b938e', dark: '#7d8782' };
const NONE = { light: '#c4c9c5', dark: '#4d5551' };
const FAINT = { light: '#e6e8e4', dark: '#282e2b' };
const VIRIDIS = [
  '#440154',
  '#482878',
  '#3e4a89',
  '#31688e',
  '#26828e',
  '#1f9e89',
  '#35b779',
  '#6ece58',
  '#b5de2b',
  '#fde725',
];
const STEPS = 128;
const MAX_CLASSES = 12;
// Values are skewed if the median is closer to an end than this share of the range.
const SKEWED = 0.2;

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The color at the position `share` of a color ramp. */
function rampColor(ramp, share) {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  const from = channels(ramp[low]);
  const to = channels(ramp[low + 1]);
  const mixed = from.map((value, i) => Math.round(value + (to[i] - value) * (place - low)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** The part of the ramp that is visible on the background. */
function visibleRamp(theme) {
  return theme === 'dark' ? VIRIDIS.slice(1) : VIRIDIS.slice(0, 9);
}

/**
 * The color scale of a column: a code for each row, and a color for each code.
 * Missing values and rare categories have different grays.
 */
function colorScale(column, theme, scaling) {
  return column.isNumber ? numberScale(column, theme, scaling) : classScale(column, theme);
}

/** The possible scalings of a column. A logarithm requires positive numbers. */
function scalingsOf(column) {
  const lowest = (column.like ?? column).quantiles()(0);
  return column.date || !(lowest > 0) ? ['linear', 'rank'] : ['linear', 'log', 'rank'];
}

/** The default scaling: linear, unless most values would have nearly the same color. */
function defaultScaling(column) {
  const at = (column.like ?? column).quantiles();
  const [low, middle, high] = [at(0.02), at(0.5), at(0.98)];
  if (!(high > low)) return 'linear';
  const place = (middle - low) / (high - low);
  if (place > SKEWED && place < 1 - SKEWED) return 'linear';
  return place <= SKEWED && scalingsOf(column).includes('log') ? 'log' : 'rank';
}

/** The position of a value on the color ramp, and the value at a position. */
function rampPlaces(column, scaling) {
  const at = (column.like ?? column).quantiles();
  if (scaling === 'rank') {
    const { sorted } = column.like ?? column;
    return { place: (value) => rankShare(sorted, value), value: at, range: 'All values' };
  }
  // Use the middle 96%, so that an extreme value does not give all others the same color.
  let [low, high] = [at(0.02), at(0.98)];
  let range = 'Middle 96% of values';
  if (!(high > low)) [low, high, range] = [at(0), at(1), 'All values'];
  const isLog = scaling === 'log';
  const to = isLog ? Math.log : (value) => value;
  const from = isLog ? Math.exp : (value) => value;
  const span = to(high) - to(low) || 1;
  return {
    place: (value) => (value > 0 || !isLog ? (to(value) - to(low)) / span : 0),
    value: (share) => from(to(low) + share * span),
    range,
  };
}

/** The rank of a value among sorted numbers, from 0 to 1. Equal numbers have the same rank. */
function rankShare(sorted, value) {
  return (countBelow(sorted, value) - 0.5) / Math.max(sorted.length - 1, 1);
}

function numberScale(column, theme, wanted) {
  const scaling = scalingsOf(column).includes(wanted) ? wanted : defaultScaling(column);
  const { place, value, range } = rampPlaces(column, scaling);
  const ramp = visibleRamp(theme);
  const colors = [NONE[theme]];
  for (let i = 0; i < STEPS; i++) colors.push(rampColor(ramp, i / (STEPS - 1)));
  const codes = Uint16Array.from(column.data, (number) => {
    if (!Number.isFinite(number)) return 0;
    return 1 + Math.round(Math.min(Math.max(place(number), 0), 1) * (STEPS - 1));
  });
  const ends = [0, 0.5, 1].map(value);
  return { kind: 'number', column, codes, colors, ends, range, ramp, scaling };
}

function countCodes({ data, categories }) {
  const counts = new Float64Array(categories.length);
  for (const code of data) if (code < counts.length) counts[code]++;
  return counts;
}

function classScale(column, theme) {
  const counts = countCodes(column);
  const missing = column.data.length - counts.reduce((sum, count) => sum + count, 0);
  // A class has the same color for true and predicted values, even if it is never predicted.
  const weights = column.like ? countCodes(column.like) : counts;
  const shown = Array.from(weights.keys()).filter((code) => weights[code] > 0 || counts[code] > 0);
  let kept = shown;
  if (shown.length > MAX_CLASSES) {
    kept = [...shown].sort((a, b) => weights[b] - weights[a]).slice(0, MAX_CLASSES);
  }
  const palette = CLASS_COLORS[theme];
  const paint = (i) => {
    if (kept[i] === column.ground) return GRAY[theme]; // the background category
    return palette[(i + (column.firstColor ?? 0)) % palette.length];
  };
  const entries = kept.map((code, i) => ({
    label: String(column.categories[code]),
    count: counts[code],
    color: paint(i),
  }));
  const codeOf = new Int32Array(counts.length).fill(-1);
  kept.forEach((code, i) => (codeOf[code] = i));
  const others = shown.length - kept.length;
  const otherCode = entries.length;
  if (others > 0) {
    const count = shown.reduce((sum, code) => sum + (codeOf[code] < 0 ? counts[code] : 0), 0);
    entries.push({
      label: `${formatCount(others)} others`,
      count,
      color: GRAY[theme],
    });
  }
  const missingCode = entries.length;
  if (missing > 0) {
    entries.push({ label: column.noneText ?? 'missing', count: missing, color: NONE[theme] });
  }
  const codes = Uint16Array.from(column.data, (code) => {
    if (code >= counts.length) return missingCode;
    return codeOf[code] < 0 ? otherCode : codeOf[code];
  });
  return {
    kind: 'class',
    column,
    codes,
    entries,
    colors: entries.map((entry) => entry.color),
  };
}
