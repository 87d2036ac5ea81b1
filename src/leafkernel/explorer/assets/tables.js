// Sortable tables that show one page at a time, so that 100,000 rows stay fast.

const PAGE_SIZE = 25;

/**
 * A table of `items`, which are numbers.
 *
 * Each field has a `name`, a sort key `key(item)` (a number, or a string if `text` is true) and the
 * content `cell(item)` (text or elements). It can have `csv(item)` for downloads. Cells have one
 * line unless `wraps` is true.
 */
class PagedTable {
  constructor({ label, fields, items, noun = 'row', file, sort, onOpen, onPoint, empty }) {
    Object.assign(this, {
      label,
      fields,
      items,
      noun,
      file,
      onOpen,
      onPoint,
      empty,
    });
    this.page = 0;
    this.sort = sort ?? null;
    this.element = make('div', { class: 'table' });
    if (this.sort) this.order();
    this.render();
  }

  order() {
    const { field, down } = this.sort;
    const { key, text } = this.fields[field];
    const keys = new Map();
    for (const item of this.items) keys.set(item, key(item));
    const sign = down ? -1 : 1;
    // Missing values are always last.
    const isNone = (value) => value === null || value === undefined || Number.isNaN(value);
    this.items = Array.from(this.items).sort((a, b) => {
      const [left, right] = [keys.get(a), keys.get(b)];
      if (isNone(left) || isNone(right)) return isNone(left) - isNone(right) || a - b;
      const order = text ? collator.compare(left, right) : left - right;
      return sign * order || a - b;
    });
  }

  sortBy(field) {
    const same = this.sort?.field === field;
    this.sort = {
      field,
      down: same ? !this.sort.down : !this.fields[field].text,
    };
    this.order();
    this.page = 0;
    this.render();
    this.element.querySelectorAll('thead th')[field].querySelector('button').focus();
  }

  turn(pages) {
    this.page += pages;
    this.render();
    const next = this.element.querySelector(pages > 0 ? '.next' : '.previous');
    (next.disabled ? this.element.querySelector('.pager button:enabled') : next)?.focus();
  }

  head() {
    const cells = this.fields.map((field, i) => {
      const sorted = this.sort?.field === i;
      const direction = this.sort?.down ? 'descending' : 'ascending';
      const arrow = sorted ? (this.sort.down ? ' ↓' : ' ↑') : '';
      const content = field.key
        ? button([field.name, make('span', { 'aria-hidden': 'true' }, arrow)], () => this.sortBy(i))
        : field.name;
      return make(
        'th',
        {
          scope: 'col',
          class: field.text ? '' : 'number',
          title: field.name,
          'aria-sort': sorted ? direction : null,
        },
        content,
      );
    });
    return make('thead', {}, make('tr', {}, cells));
  }

  body() {
    const start = this.page * PAGE_SIZE;
    const rows = Array.from(this.items.slice(start, start + PAGE_SIZE)).map((item) => {
      const cells = this.fields.map((field) => {
        const content = field.cell(item);
        const title = typeof content === 'string' ? content : null; // long text is truncated
        const kind = field.wraps ? 'wraps' : field.text ? '' : 'number';
        return make('td', { class: kind, title }, content);
      });
      const on = {};
      if (this.onOpen) on.click = (event) => event.target.closest('button') || this.onOpen(item);
      if (this.onPoint) {
        on.mouseenter = on.focusin = () => this.onPoint(item);
        on.mouseleave = on.focusout = () => this.onPoint(-1);
      }
      return make('tr', { class: this.onOpen ? 'opens' : '', 'data-row': String(item), on }, cells);
    });
    return make('tbody', {}, rows);
  }

  pager() {
    const count = this.items.length;
    const pages = Math.max(1, Math.ceil(count / PAGE_SIZE));
    const first = this.page * PAGE_SIZE + 1;
    const last = Math.min(first + PAGE_SIZE - 1, count);
    const turning = pages > 1;
    return make(
      'div',
      { class: 'pager' },
      turning
        ? button('‹', () => this.turn(-1), {
            class: 'previous',
            disabled: this.page === 0,
            'aria-label': 'Previous page',
          })
        : null,
      make(
        'span',
        {},
        turning
          ? `${formatCount(first)}–${formatCount(last)} of ${formatCount(count)}`
          : plural(count, this.noun),
      ),
      turning
        ? button('›', () => this.turn(1), {
            class: 'next',
            disabled: this.page >= pages - 1,
            'aria-label': 'Next page',
          })
        : null,
      this.file
        ? button('Download CSV', () => this.download(), {
            class: 'quiet download',
          })
        : null,
    );
  }

  download() {
    const fields = this.fields.filter((field) => field.csv);
    const names = fields.map((field) => field.name);
    const cells = (item) => fields.map((field) => field.csv(item));
    tellFormulas(
      this.element.querySelector('.pager'),
      saveCsv(this.file, names, this.items, cells),
    );
  }

  render() {
    this.onPoint?.(-1); // the highlighted row may disappear
    if (!this.items.length) {
      this.element.replaceChildren(make('p', { class: 'empty' }, this.empty ?? 'Nothing to show.'));
      return;
    }
    const table = make('table', { 'aria-label': this.label }, this.head(), this.body());
    this.element.replaceChildren(this.pager(), scroller(this.label, table));
  }
}
