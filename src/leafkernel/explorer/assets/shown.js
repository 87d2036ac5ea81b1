// The rows that are selected by the legend, the filter and the lasso. Other rows are faint.

class Shown {
  constructor(app) {
    this.app = app;
    this.only = null; // selected codes of the legend; null: all
    this.filterText = '';
    this.filter = null; // mask of rows; null: all
    this.lasso = null;
    this.lassoLayer = null;
  }

  /** The mask of the rows that are shown; null: all. */
  mask() {
    const { scale, report } = this.app;
    const { only, filter, lasso } = this;
    if (!only && !filter && !lasso) return null;
    return Uint8Array.from({ length: report.n }, (_, row) =>
      (!only || only.has(scale.codes[row])) && (!filter || filter[row]) && (!lasso || lasso[row])
        ? 1
        : 0,
    );
  }

  /** A description of the selection. */
  text() {
    const { scale, report, color } = this.app;
    const parts = [];
    if (this.only) {
      const names = [...this.only].map((code) => scale.entries[code].label);
      parts.push(`${report.nameOf(color)}: ${names.join(', ')}`);
    }
    if (this.filter) parts.push(this.filterText);
    if (this.lasso) parts.push('inside the lasso');
    return parts.join('; ');
  }

  /** Set the filter. Returns an error message, or null. */
  setFilter(text) {
    const { report } = this.app;
    this.filterText = text.trim();
    this.filter = null;
    if (!this.filterText) return null;
    try {
      const test = readFilter(report, this.filterText);
      this.filter = Uint8Array.from({ length: report.n }, (_, row) => (test(row) ? 1 : 0));
      return null;
    } catch (error) {
      return error.message;
    }
  }

  clear() {
    this.only = this.filter = this.lasso = null;
    this.filterText = '';
    byId('filter').value = '';
    sayFilterError(null);
  }

  /** Start or cancel the lasso. */
  toggleLasso() {
    const { app } = this;
    const stop = () => {
      this.lassoLayer?.remove();
      this.lassoLayer = null;
      byId('lasso').setAttribute('aria-pressed', 'false');
    };
    if (this.lassoLayer) return stop();
    if (!app.plot) return;
    byId('lasso').setAttribute('aria-pressed', 'true');
    this.lassoLayer = new Lasso(app.plot, (mask) => {
      stop();
      this.lasso = mask;
      app.paint();
    });
  }
}

function sayFilterError(message) {
  byId('filter-error').textContent = message ?? '';
  byId('filter-error').hidden = !message;
  byId('filter').setAttribute('aria-invalid', String(Boolean(message)));
}

/** Update the number of rows shown and the buttons beside it. */
function drawShown(app, mask) {
  const { n } = app.report;
  const count = mask ? mask.reduce((sum, one) => sum + one, 0) : n;
  byId('shown-text').textContent = mask
    ? `${formatCount(count)} of ${plural(n, 'row')} shown`
    : `All ${plural(n, 'row')} shown`;
  byId('shown-text').title = mask ? app.shown.text() : '';
  for (const id of ['keep-a', 'keep-b', 'show-all']) byId(id).disabled = !mask;
  for (const id of ['keep-a', 'keep-b']) byId(id).disabled ||= count === 0;
}

function listenToShown(app) {
  const { shown } = app;
  let waiting = 0;
  const apply = () => {
    clearTimeout(waiting);
    sayFilterError(shown.setFilter(byId('filter').value));
    app.paint();
    writeView(app);
  };
  byId('filter').addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 300);
  });
  byId('filter').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.isComposing) apply();
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    byId('filter').value = '';
    apply();
  });
  byId('lasso').addEventListener('click', () => shown.toggleLasso());
  byId('show-all').addEventListener('click', () => {
    shown.clear();
    app.paint();
    writeView(app);
    byId('filter').focus();
  });
  for (const name of ['A', 'B']) {
    byId(`keep-${name.toLowerCase()}`).addEventListener('click', () => {
      app.setGroup(name, { text: shown.text(), mask: shown.mask() });
      app.openTab('groups');
    });
  }
}
