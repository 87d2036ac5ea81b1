// The difference of two groups of rows in a column, from 0 (same values) to 1 (separated).

const MOST_COMPARED = 10000; // rows of a group; larger groups are sampled evenly

function rowsOfMask(mask) {
  const rows = [];
  for (let row = 0; row < mask.length; row++) if (mask[row]) rows.push(row);
  if (rows.length <= MOST_COMPARED) return rows;
  const step = rows.length / MOST_COMPARED;
  return Array.from({ length: MOST_COMPARED }, (_, i) => rows[Math.floor(i * step)]);
}

/** The difference in a column, and typical values of both groups; null for text. */
function compareColumn(column, rowsA, rowsB) {
  if (column.kind === 'text') return null;
  const [a, b] = [rowsA, rowsB].map((rows) => rows.filter((row) => !column.isMissing(row)));
  const missing = [1 - a.length / rowsA.length, 1 - b.length / rowsB.length];
  const byMissing = {
    difference: Math.abs(missing[0] - missing[1]),
    sides: missing.map((share) => ({ text: 'missing', note: formatShare(share) })),
  };
  if (!a.length || !b.length) return byMissing;
  const byValue = column.isNumber ? compareNumbers(column, a, b) : compareShares(column, a, b);
  return byValue.difference >= byMissing.difference ? byValue : byMissing;
}

/**
 * Compare numbers by rank: the probability that A has the larger value minus the probability that B
 * has it (Somers' D, or the rank-biserial correlation).
 */
function compareNumbers(column, a, b) {
  const sorted = [a, b].map((rows) => Float64Array.from(rows, (row) => column.data[row]).sort());
  let larger = 0;
  for (const value of sorted[0]) larger += 2 * countBelow(sorted[1], value) - sorted[1].length;
  const signed = larger / (sorted[0].length * sorted[1].length);
  const round = column.date ? (value) => value : (value) => Number(value.toPrecision(4));
  const sides = sorted.map((values) => {
    const at = (share) => column.format(round(values[Math.round(share * (values.length - 1))]));
    return { text: at(0.5), note: `${at(0.25)} to ${at(0.75)}` };
  });
  return { difference: Math.abs(signed), sign: Math.sign(signed), sides };
}

/** The number of sorted numbers below a value. Equal numbers count half. */
function countBelow(sorted, value) {
  const first = (isBefore) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(sorted[middle])) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return (first((other) => other < value) + first((other) => other <= value)) / 2;
}

/** Compare categories: half the sum of the differences in shares, and the largest difference. */
function compareShares(column, a, b) {
  const [sharesA, sharesB] = [a, b].map((rows) => {
    const shares = new Float64Array(column.categories.length);
    for (const row of rows) shares[column.data[row]] += 1 / rows.length;
    return shares;
  });
  let [sum, most, widest] = [0, 0, -1];
  for (let code = 0; code < sharesA.length; code++) {
    const apart = Math.abs(sharesA[code] - sharesB[code]);
    sum += apart;
    if (apart > widest) [widest, most] = [apart, code];
  }
  const name = short(String(column.categories[most]));
  const sides = [sharesA, sharesB].map((shares) => ({
    text: name,
    note: formatShare(shares[most]),
  }));
  return { difference: sum / 2, sides };
}

/** All columns that can be compared, the largest difference first. */
function compareGroups(report, maskA, maskB) {
  const [rowsA, rowsB] = [rowsOfMask(maskA), rowsOfMask(maskB)];
  const columns = [report.target, report.prediction, report.outlier, ...report.columns];
  return columns
    .map((column) => ({ column, found: compareColumn(column, rowsA, rowsB) }))
    .filter(({ found }) => found !== null)
    .sort((x, y) => y.found.difference - x.found.difference);
}
