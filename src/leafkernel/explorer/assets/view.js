// Store the view in the URL fragment, so that a link restores it.

const framed = attempt(() => window.top !== window, true);

function viewText(app) {
  const parts = new URLSearchParams();
  parts.set('color', app.color.key);
  if (app.row >= 0) parts.set('row', String(app.row));
  parts.set('tab', app.tab);
  if (app.scaling) parts.set('scale', app.scaling);
  if (app.shown.only) parts.set('only', [...app.shown.only].join('.'));
  if (app.shown.filterText) parts.set('filter', app.shown.filterText);
  if (app.plot && !app.plot.atHome) {
    const { x, y, distance } = app.plot.aimed();
    parts.set('view', [x, y, distance].map((number) => Number(number.toPrecision(5))).join(','));
  }
  return parts.toString();
}

function readView() {
  const parts = new URLSearchParams(attempt(() => location.hash.slice(1), ''));
  const numbers = (name, mark) =>
    (parts.get(name) ?? '').split(mark).filter(Boolean).map(Number).filter(Number.isFinite);
  const row = parts.has('row') ? Number(parts.get('row')) : -1;
  const view = numbers('view', ',');
  const only = numbers('only', '.');
  return {
    color: parts.get('color'),
    row: Number.isInteger(row) ? row : -1,
    tab: parts.get('tab'),
    scaling: parts.get('scale'),
    only: only.length ? new Set(only) : null,
    filter: parts.get('filter') ?? '',
    view: view.length === 3 && view[2] > 0 ? view : null,
  };
}

/** Write the view to the URL. `step` adds an entry to the browser history. */
function writeView(app, step) {
  const text = `#${viewText(app)}`;
  // In a frame, a new entry would capture the back button of the outer page.
  const method = step && !framed ? 'pushState' : 'replaceState';
  attempt(() => text !== location.hash && history[method](null, '', text));
}

function linkToView(app) {
  return `${location.href.split('#')[0]}#${viewText(app)}`;
}

async function copyLink(app) {
  const link = linkToView(app);
  const shown = byId('copy-link');
  try {
    await navigator.clipboard.writeText(link);
    shown.textContent = 'Copied';
    setTimeout(() => (shown.textContent = 'Copy link'), 1500);
  } catch {
    // Browsers may not allow this for local files. Show the text for copying instead.
    byId('link-box').hidden = false;
    byId('link-text').value = link;
    byId('link-text').focus();
    byId('link-text').select();
  }
}
