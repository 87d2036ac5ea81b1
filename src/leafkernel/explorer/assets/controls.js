// Event listeners of buttons, fields and keys.

const THEME_KEY = 'leafkernel-theme';

/** The stored theme, if there is one. */
function chosenTheme() {
  const theme = attempt(() => localStorage.getItem(THEME_KEY), null);
  return ['light', 'dark'].includes(theme) ? theme : null;
}

function listenToControls(app) {
  byId('color-by').addEventListener('change', (event) => app.colorBy(event.target.value));
  byId('point-size').addEventListener('input', (event) =>
    app.plot?.setPointSize(Number(event.target.value)),
  );
  byId('zoom-in').addEventListener('click', () => app.plot?.zoom(1.6));
  byId('zoom-out').addEventListener('click', () => app.plot?.zoom(1 / 1.6));
  byId('zoom-home').addEventListener('click', () => app.plot?.home());
  byId('save-image').addEventListener('click', () => app.plot && saveImage(app.plot));
  byId('copy-link').addEventListener('click', () => copyLink(app));
  byId('to-details').addEventListener('click', () => {
    byId('panel').scrollIntoView({
      behavior: calmMotion() ? 'auto' : 'smooth',
    });
    byId('details-title')?.focus({ preventScroll: true });
  });
  byId('theme').addEventListener('click', () => {
    const theme = app.theme === 'dark' ? 'light' : 'dark';
    attempt(() => localStorage.setItem(THEME_KEY, theme));
    app.changeTheme(theme);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (!chosenTheme()) app.changeTheme(app.systemTheme());
  });
  addEventListener('popstate', () => app.restore());
  byId('plot').addEventListener('keydown', (event) => plotKey(app, event));
  byId('plot').addEventListener('mouseleave', () => (byId('tooltip').hidden = true));
  addEventListener('keydown', (event) => {
    const writing = event.target.closest?.('input, select, textarea');
    if (event.key === '/' && !writing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      byId('search').focus();
    } else if (event.key === 'Escape' && !writing) {
      if (app.shown.lassoLayer) app.shown.toggleLasso();
      else if (app.row >= 0) app.select(-1);
    }
  });
  byId('see-notes').hidden = !app.report.notes.length;
  byId('see-notes').textContent = `${plural(app.report.notes.length, 'note')} on the data`;
  byId('see-notes').addEventListener('click', () => {
    app.openTab('notes');
    byId('panel-notes').focus();
  });
  listenToSearch(app);
  listenToShown(app);
}

/** Keyboard shortcuts of the map. */
function plotKey(app, event) {
  if (!app.plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
  };
  if (steps[event.key]) {
    const next = app.plot.step(app.row, ...steps[event.key]);
    if (next >= 0) app.select(next);
  } else if (event.key === '+' || event.key === '=') app.plot.zoom(1.6);
  else if (event.key === '-' || event.key === '_') app.plot.zoom(1 / 1.6);
  else if (event.key === '0') app.plot.home();
  else return;
  event.preventDefault();
}
