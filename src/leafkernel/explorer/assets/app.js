// The page: what is shown, and how its parts follow.

class App {
  constructor(report) {
    this.report = report;
    this.theme = chosenTheme() ?? this.systemTheme();
    this.color = report.target;
    this.row = -1;
    this.tab = 'row';
    this.only = null; // codes of the legend that are told from the rest; null: all alike
    this.trail = []; // rows seen before this one
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
    this.makeTabs();
    this.setTheme(this.theme);
    listenToControls(this);
    this.makePlot();
    const view = readView();
    this.color = this.findColor(view.color) ?? this.report.target;
    this.only = view.only;
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
      `${report.forest.charAt(0).toUpperCase()}${report.forest.slice(1)} on ${plural(report.n, 'row')}, predicting `,
      make('b', {}, report.target.name),
    ];
    if (score) {
      parts.push(`. ${score.label} `, make('b', {}, score.text));
      if (score.baseline) parts.push(` (${score.baseline.label}: ${score.baseline.text})`);
    }
    byId('summary').append(...parts, '.');
    byId('notes').hidden = !report.notes.length;
    byId('notes-list').append(...report.notes.map((note) => make('li', {}, note)));
    const keys = matchMedia('(hover: hover)').matches ? ' (press /)' : '';
    byId('search').placeholder = `${report.id_.name} or text${keys}`;
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
    byId('color-by').append(
      group(
        'The forest',
        columns.filter((column) => !isOwn(column)),
      ),
      ...[group('Columns, the most important first', ranked)].filter(Boolean),
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
    this.color = column;
    this.only = null;
    this.paint();
    writeView(this);
  }

  /** The color of a class of the target, wherever it is named. */
  classColor(name) {
    const entry = this.targetScale?.entries?.find(({ label }) => label === name);
    return entry ? entry.color : null;
  }

  async paint() {
    byId('color-by').value = this.color.key;
    this.scale = colorScale(this.color, this.theme);
    const only = [...(this.only ?? [])].filter((code) => this.scale.entries?.[code]);
    this.only = only.length ? new Set(only) : null; // a link may ask for what is not there
    this.targetScale =
      this.color === this.report.target ? this.scale : colorScale(this.report.target, this.theme);
    drawLegend(this);
    if (this.plot) await this.plot.draw(this.scale, this.only, this.theme);
  }

  /** A click on the legend: this class alone; more clicks add and take away. */
  isolate(code) {
    const only = new Set(this.only ?? []);
    if (!only.delete(code)) only.add(code);
    this.only = only.size ? only : null;
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
        hover: (row, x, y) => this.hover(row, x, y),
        select: (row) => this.select(row),
        moved: () => this.moved(),
      });
      byId('point-size').value = this.plot.size;
      message.hidden = true;
    } catch {
      this.plot = null;
      document.body.classList.add('no-plot');
      message.textContent =
        'The map needs WebGL, which this browser has switched off or does not have. Search and all tables work without it.';
    }
  }

  moved() {
    clearTimeout(this.moving);
    this.moving = setTimeout(() => writeView(this), 200);
  }

  hover(row, x, y) {
    const tip = byId('tooltip');
    tip.hidden = row < 0;
    if (row < 0) return;
    const { report } = this;
    const top = report.ranked.filter((column) => column.feature !== false).slice(0, 4);
    const known = [report.target, report.prediction];
    if (![...known, ...top].includes(this.color)) top.push(this.color);
    const lines = [...known, ...top].map((column) => [
      make('dt', {}, report.nameOf(column)),
      make('dd', {}, column.text(row)),
    ]);
    tip.replaceChildren(make('b', {}, report.label(row)), make('dl', {}, lines.flat()));
    const left = x + 16 + tip.offsetWidth > this.plot.width ? x - 16 - tip.offsetWidth : x + 16;
    const above = Math.min(
      Math.max(y - tip.offsetHeight / 2, 4),
      this.plot.height - tip.offsetHeight - 4,
    );
    tip.style.transform = `translate(${Math.max(left, 4)}px, ${above}px)`;
  }

  /** Show in the map where a row of a table is. */
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
    if (this.trail.at(-1) === row) this.trail.pop(); // chosen again, or gone back to
    if (this.plot) {
      this.plot.point(-1);
      this.plot.select(row, row < 0 ? [] : this.report.neighbors(row));
      if (row >= 0 && bringIntoView) this.plot.bringIntoView(row);
    }
    this.renderRow();
    if (row >= 0 && !keepTab) this.openTab('row', { quiet: true });
    this.tell();
    if (changed && !quiet) writeView(this, true);
  }

  /** One line of what is selected, read out to those who do not see the map. */
  tell() {
    const { report, row } = this;
    byId('to-details').hidden = row < 0;
    let text = '';
    if (row >= 0) {
      text = `${report.label(row)}: ${report.target.name} = ${report.target.text(row)}, predicted ${report.prediction.text(row)}`;
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

  /** Select a row that a panel names, and read on there. */
  open(row) {
    this.select(row);
    byId('details-title')?.focus();
  }

  renderRow() {
    const shown = byId('panel-row');
    const isHeld = shown.contains(document.activeElement);
    shown.replaceChildren(renderDetails(this, this.row));
    // What had the focus is gone: a keyboard's reader would start at the top of the page.
    if (isHeld) (byId('details-title') ?? shown).focus({ preventScroll: true });
  }

  // --- Tabs

  makeTabs() {
    for (const { key, name } of TABS) {
      const shown = key === 'mistakes' && !this.report.isClassification ? 'Errors' : name;
      const tab = button(shown, () => this.openTab(key), {
        id: `tab-${key}`,
        role: 'tab',
        'aria-controls': `panel-${key}`,
        'aria-selected': 'false',
        tabIndex: -1,
      });
      byId('tabs').append(tab);
      byId('tab-panels').append(
        make('div', {
          id: `panel-${key}`,
          role: 'tabpanel',
          class: 'tab-panel',
          'aria-labelledby': `tab-${key}`,
          tabIndex: 0,
          hidden: true,
        }),
      );
    }
    byId('tabs').addEventListener('keydown', (event) => {
      const at = TABS.findIndex(({ key }) => key === this.tab);
      const to = {
        ArrowRight: at + 1,
        ArrowLeft: at - 1,
        Home: 0,
        End: TABS.length - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.openTab(TABS[(to + TABS.length) % TABS.length].key);
      byId(`tab-${this.tab}`).focus();
    });
  }

  openTab(key, { quiet = false } = {}) {
    const tab = TABS.find((candidate) => candidate.key === key) ?? TABS[0];
    this.tab = tab.key;
    for (const { key: other } of TABS) {
      const chosen = other === tab.key;
      byId(`tab-${other}`).setAttribute('aria-selected', String(chosen));
      byId(`tab-${other}`).tabIndex = chosen ? 0 : -1;
      byId(`panel-${other}`).hidden = !chosen;
    }
    const element = byId(`tab-${tab.key}`);
    const strip = byId('tabs');
    strip.scrollLeft = element.offsetLeft - (strip.clientWidth - element.offsetWidth) / 2;
    // Made when first asked for: a table of 100,000 rows takes a moment to sort.
    if (tab.render && !byId(`panel-${tab.key}`).hasChildNodes()) this.renderTab(tab.key);
    byId('tab-panels').scrollTop = 0;
    // On a phone the page itself is scrolled: start where the tab starts.
    if (byId('panel').getBoundingClientRect().top < 0) byId('panel').scrollIntoView();
    if (!quiet) writeView(this);
  }

  renderTab(key) {
    const { render } = TABS.find((tab) => tab.key === key);
    if (render) byId(`panel-${key}`).replaceChildren(render(this));
  }

  async changeTheme(theme) {
    this.setTheme(theme);
    await this.paint();
    this.renderRow();
    for (const { key, render } of TABS) {
      if (render && byId(`panel-${key}`).hasChildNodes()) byId(`panel-${key}`).replaceChildren();
    }
    this.openTab(this.tab, { quiet: true });
  }

  /** Back and forward of the browser. */
  restore() {
    const view = readView();
    const color = this.findColor(view.color) ?? this.report.target;
    const codes = (only) => [...(only ?? [])].join();
    if (color !== this.color || codes(view.only) !== codes(this.only)) {
      this.color = color;
      this.only = view.only;
      this.paint();
    }
    this.select(view.row, { keepTab: true, quiet: true, bringIntoView: false });
    this.openTab(view.tab ?? 'row', { quiet: true });
    this.plot?.show(view.view);
  }
}
