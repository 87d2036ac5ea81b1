// Parse filters such as `age > 60 and island = Dream`.

const COMPARISONS = {
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '=': (order) => order === 0,
  '!=': (order) => order !== 0,
};
const SAME_SIGNS = { '≥': '>=', '≤': '<=', '≠': '!=', '==': '=', '<>': '!=' };
const SIGN = /^\s*(>=|<=|!=|<>|==|≥|≤|≠|>|<|=|contains\b|is\s+not\s+missing\b|is\s+missing\b)\s*/i;

/** The columns that a condition can use, the longest names first. */
function filterColumns(report) {
  const rows = (name, value) => ({ name, kind: 'text', value, isMissing: () => false });
  const named = (name, column) => column && { name, column };
  const entries = [
    ...report.columns.map((column) => named(column.name, column)),
    named(report.target.name, report.target),
    named(report.nameOf(report.target), report.target),
    named(report.nameOf(report.prediction), report.prediction),
    named('predicted', report.prediction),
    named('outlier score', report.outlier),
    named('error', report.error),
    named('right or wrong', report.mistakes),
    named(
      report.id_.name,
      rows(report.id_.name, (row) => report.id(row)),
    ),
    named('position', {
      isNumber: true,
      value: (row) => report.position(row),
      isMissing: () => false,
    }),
  ];
  return entries.filter(Boolean).sort((a, b) => b.name.length - a.name.length);
}

/**
 * Parse a filter and return a function of a row. Throws an error for an invalid filter.
 * "and" binds more tightly than "or". A missing value matches only "is missing".
 */
function readFilter(report, text) {
  const columns = filterColumns(report);
  const alternatives = [[]];
  let rest = text.trim();
  while (rest) {
    const condition = readCondition(columns, rest);
    alternatives.at(-1).push(condition.test);
    rest = condition.rest.trim();
    if (!rest) break;
    const [joined, word] = /^(and|or)\b\s*/i.exec(rest) ?? [];
    if (!joined) throw new Error(`Write “and” or “or” before “${short(rest)}”.`);
    if (word.toLowerCase() === 'or') alternatives.push([]);
    rest = rest.slice(joined.length);
    if (!rest) throw new Error(`Write a condition after “${word}”.`);
  }
  return (row) => alternatives.some((tests) => tests.every((test) => test(row)));
}

function readCondition(columns, text) {
  const { column, name, rest } = readColumn(columns, text);
  const [signText, sign] = SIGN.exec(rest) ?? [];
  if (!signText) {
    throw new Error(`Write >, <, =, !=, “contains” or “is missing” after “${short(name)}”.`);
  }
  const after = rest.slice(signText.length);
  const words = sign.toLowerCase().replace(/\s+/g, ' ');
  if (words === 'is missing') return { test: (row) => column.isMissing(row), rest: after };
  if (words === 'is not missing') return { test: (row) => !column.isMissing(row), rest: after };
  const value = readValue(after);
  if (!value.text) throw new Error(`Write a value after “${short(name)} ${sign}”.`);
  return {
    test: comparison(column, name, SAME_SIGNS[words] ?? words, value.text),
    rest: value.rest,
  };
}

/** The column at the start of a condition: quoted, or the longest name that matches. */
function readColumn(columns, text) {
  const quoted = readQuoted(text);
  const fits = quoted
    ? ({ name }) => name.toLowerCase() === quoted.text.toLowerCase()
    : ({ name }) =>
        text.slice(0, name.length).toLowerCase() === name.toLowerCase() &&
        (SIGN.test(text.slice(name.length)) || text.length === name.length);
  const found = columns.find(fits);
  if (found) return { ...found, rest: quoted ? quoted.rest : text.slice(found.name.length) };
  const tried = quoted?.text ?? (text.split(/[<>=!≥≤≠]|\s+(?:contains|is)\b/i)[0].trim() || text);
  throw new Error(`There is no column “${short(tried)}”.`);
}

function readQuoted(text) {
  const found = /^(["'`“])(.*?)(?:["'`”])(?=$|[\s<>=!≥≤≠])/.exec(text);
  return found && { text: found[2], rest: text.slice(found[0].length) };
}

/** A value: quoted, or all text up to the next "and" or "or". */
function readValue(text) {
  const quoted = readQuoted(text);
  if (quoted) return quoted;
  const end = /\s+(?:and|or)(?:\s|$)/i.exec(text)?.index ?? text.length;
  return { text: text.slice(0, end).trim(), rest: text.slice(end) };
}

function comparison(column, name, sign, text) {
  const wanted = text.toLowerCase();
  if (sign === 'contains') {
    return (row) =>
      !column.isMissing(row) && String(column.value(row)).toLowerCase().includes(wanted);
  }
  const holds = COMPARISONS[sign];
  if (column.isNumber) {
    const number = column.date ? Date.parse(text) / 86400000 : Number(text.replace('−', '-'));
    if (!Number.isFinite(number)) {
      const kind = column.date ? 'a date such as 2024-02-29' : 'a number';
      throw new Error(`“${short(text)}” is not ${kind}, which “${short(name)}” requires.`);
    }
    const isSingle = column.data instanceof Float32Array;
    const value = isSingle ? Math.fround(number) : number; // the precision of the data
    return (row) => !column.isMissing(row) && holds(column.value(row) - value);
  }
  const order = ['=', '!='].includes(sign)
    ? (value) => (value.toLowerCase() === wanted ? 0 : 1)
    : (value) => collator.compare(value, text);
  return (row) => !column.isMissing(row) && holds(order(String(column.value(row))));
}
