// The page: its state, and updates of its parts.

const MAP_IN_SHORT = 'Rows that are close share leaves. The axes have no meaning.';

class App {
  constructor(report) {
    this.report = report;
    this.theme = chosenTheme() ?? this.systemTheme();
    this.color = report.target;
    this.row = -1;
    this.tab = 'row';
    this.scaling = null; // scale of the colors of numbers; null: chosen for the column
    this.shown = new Shown(this);
    this.groups = { A: null, B: null };
    this.trail = []; // previously selected rows
    this.plot = null;
    this.allValues = false;
    this.allColumns = false;
    this.allLines = false;
  }

  systemTheme() {
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }

  async start() {
    this.fillHeader();
    this.fillColors();
    makeTabs(this);
    this.setTheme(this.theme);
    listenToControls(this);
    this.makePlot();
    const view = readView();
    this.color = this.findColor(view.color) ?? this.report.target;
    this.scaling = view.scaling;
    this.shown.only = view.only;
    byId('filter').value = view.filter;
    sayFilterError(this.shown.setFilter(view.filter));
    await this.paint();
    this.openTab(view.tab ?? 'row', { quiet: true });
    const isRow = view.row >= 0 && view.row < this.report.n;
    if (isRow) this.select(view.row, { keepTab: view.tab !== null, quiet: true });
    else this.renderRow();
    if (view.view) this.plot?.show(view.view, false);
  }

  // --- Header, colors, legend

  fillHeader() {
    const { report } = this;
    const { score } = report;
    byId('title').textContent = report.title;
    const parts = [
      `${report.forest.charAt(0).toUpperCase()}${report.forest.slice(1)} on ${plural(report.n - report.n_new, 'row')}, predicting `,
      make('b', {}, short(report.target.name)),
      report.n_new ? `, with ${plural(report.n_new, 'new row')}` : '',
    ];
    if (score) {
      parts.push(`. ${score.label} `, make('b', {}, score.text));
      if (score.baseline) parts.push(` (${score.baseline.label}: ${score.baseline.text})`);
    }
    byId('summary').append(...parts, '.');
    byId('map-method').textContent = report.embedding.label;
    byId('map-about').textContent = report.n_new
      ? `${MAP_IN_SHORT} Diamonds: new rows.`
      : MAP_IN_SHORT;
    byId('map-caption').title = report.embedding.about;
    const keys = matchMedia('(hover: hover)').matches ? ' (press /)' : '';
    byId('search').placeholder = `${report.id_.name} or text${keys}`;
    const number = report.ranked
      .filter((column) => column.isNumber && !column.date)
      .slice(0, 8)
      .sort((a, b) => a.name.length - b.name.length)[0];
    if (number) {
      const middle = number.format(number.quantiles()(0.5));
      byId('filter').placeholder = short(`${number.name} > ${middle}`);
    }
    byId('copy-link').hidden = location.protocol === 'about:'; // a notebook's frame has no address
  }

  fillColors() {
    const { report } = this;
    const option = (column) => make('option', { value: column.key }, report.nameOf(column));
    const columns = report.colorColumns();
    const group = (label, members) =>
      members.length ? make('optgroup', { label }, members.map(option)) : null;
    const isOwn = (column) => report.columns.includes(column);
    const ranked = report.ranked.filter((column) => columns.includes(column));
    byId('color-by').replaceChildren(
      group(
        'Forest',
        columns.filter((column) => !isOwn(column)),
      ),
      ...[group('Columns, most important first', ranked)].filter(Boolean),
    );
  }

  findColor(name) {
    const columns = this.report.colorColumns();
    return (
      columns.find((column) => column.key === name) ??
      columns.find((column) => column.name === name)
    );
  }

  colorBy(name) {
    const column = this.findColor(name);
    if (!column) return;
    if (column === this.color) return;
    this.color = column;
    this.scaling = null;
    this.shown.only = null;
    this.paint();
    this.recolorPanels();
    writeView(this);
  }

  rescale(scaling) {
    this.scaling = scaling;
    this.paint();
    this.recolorPanels();
    byId('scaling').focus();
    writeView(this);
  }

  /**
   * The color of a class of the target if the map is colored by the target. With other colors on the
   * map, it would be ambiguous.
   */
  classColor(name) {
    if (![this.report.target, this.report.prediction].includes(this.color)) return null;
    const entry = this.scale?.entries?.find(({ label }) => label === name);
    return entry ? entry.color : null;
  }

  /** The color of a row on the map. */
  rowColor(row) {
    return this.scale ? this.scale.colors[this.scale.codes[row]] : null;
  }

  /** Redraw the panels in the current colors of the map. */
  recolorPanels() {
    this.renderRow();
    redrawTabs(this);
  }

  /** Set group A or B to `{ text, mask }`, or to null. */
  setGroup(name, group) {
    this.groups[name] = group;
    this.report.groups = groupColumn(this);
    this.fillColors();
    if (this.color.key === 'groups') {
      this.color = this.report.groups ?? this.report.target;
      this.shown.only = null;
    }
    this.paint();
    renderTab(this, 'groups');
  }

  async paint() {
    byId('color-by').value = this.color.key;
    this.scale = colorScale(this.color, this.theme, this.scaling);
    const { shown } = this;
    const only = [...(shown.only ?? [])].filter((code) => this.scale.entries?.[code]);
    shown.only = only.length ? new Set(only) : null; // a link may have invalid codes
    const mask = shown.mask();
    drawLegend(this);
    drawShown(this, mask);
    if (this.plot) await this.plot.draw(this.scale, mask, this.theme);
  }

  /** A click on the legend shows only this class. Further clicks add or remove classes. */
  isolate(code) {
    const only = new Set(this.shown.only ?? []);
    if (!only.delete(code)) only.add(code);
    this.shown.only = only.size ? only : null;
    this.paint();
    byId('legend').querySelectorAll('.legend-entry')[code]?.focus();
    writeView(this);
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  }

  // --- The map

  makePlot() {
    const message = byId('plot-message');
    try {
      if (!canDraw()) throw new Error('no WebGL');
      this.plot = new Plot(this.report, {
        hover: (row, x, y) => showTooltip(this, row, [x, y]),
        select: (row) => this.select(row),
        moved: () => this.moved(),
      });
      byId('point-size').value = this.plot.size;
      message.hidden = true;
    } catch {
      this.plot = null;
      document.body.classList.add('no-plot');
      message.textContent =
        'The map requires WebGL, which is not available in this browser. Search and all tables work without it.';
    }
  }

  moved() {
    clearTimeout(this.moving);
    this.moving = setTimeout(() => writeView(this), 200);
  }

  /** Highlight a row of a table on the map. */
  point(row) {
    this.plot?.point(row);
  }

  // --- The selected row

  select(row, { keepTab = false, quiet = false, isBack = false, bringIntoView = true } = {}) {
    if (!Number.isInteger(row) || row >= this.report.n) return;
    if (row < 0) row = -1;
    if (row !== this.row && this.row >= 0 && !isBack && !quiet) this.trail.push(this.row);
    const changed = row !== this.row;
    this.row = row;
    if (this.trail.at(-1) === row) this.trail.pop(); // the same row again, or back
    if (this.plot) {
      showTooltip(this, -1); // it may cover the neighbors
      this.plot.point(-1);
      this.plot.select(row, row < 0 ? [] : this.report.neighbors(row));
      if (row >= 0 && bringIntoView) this.plot.bringIntoView(row);
    }
    this.renderRow();
    if (row >= 0 && !keepTab) this.openTab('row', { quiet: true });
    this.tell();
    if (changed && !quiet) writeView(this, true);
  }

  /** Describe the selected row in one line, also for screen readers. */
  tell() {
    const { report, row } = this;
    byId('to-details').hidden = row < 0;
    let text = '';
    if (row >= 0) {
      const truth = report.isNew(row)
        ? ''
        : `${short(report.target.name)} = ${report.target.text(row)}, `;
      text = `${report.label(row)}: ${truth}predicted ${report.prediction.text(row)}`;
      if (report.isMistake(row)) text += ' ✗';
    }
    byId('status').textContent = text;
  }

  canGoBack() {
    return this.trail.length > 0;
  }

  back() {
    const row = this.trail.pop();
    if (row === undefined) return;
    this.select(row, { isBack: true });
    byId('details-title')?.focus();
  }

  /** Select a row from a panel, and move the focus to its details. */
  open(row) {
    this.select(row);
    byId('details-title')?.focus();
  }

  renderRow() {
    const shown = byId('panel-row');
    const isHeld = shown.contains(document.activeElement);
    shown.replaceChildren(renderDetails(this, this.row));
    // The focused element was removed. Without this, the focus would go to the top of the page.
    if (isHeld) (byId('details-title') ?? shown).focus({ preventScroll: true });
  }

  openTab(key, { quiet = false } = {}) {
    this.tab = showTab(this, key).key;
    if (!quiet) writeView(this);
  }

  renderTab(key) {
    renderTab(this, key);
  }

  async changeTheme(theme) {
    this.setTheme(theme);
    await this.paint();
    this.recolorPanels();
  }

  /** Restore a view for the back and forward buttons of the browser. */
  restore() {
    const view = readView();
    const color = this.findColor(view.color) ?? this.report.target;
    this.color = color;
    this.scaling = view.scaling;
    this.shown.only = view.only;
    byId('filter').value = view.filter;
    sayFilterError(this.shown.setFilter(view.filter));
    this.paint();
    this.select(view.row, { keepTab: true, quiet: true, bringIntoView: false });
    this.openTab(view.tab ?? 'row', { quiet: true });
    this.plot?.show(view.view);
  }
}
