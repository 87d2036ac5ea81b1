// The tabs. All of them are always visible and keep their positions.

function tabName(app, { key, name }) {
  return key === 'mistakes' && !app.report.isClassification ? 'Errors' : name;
}

/** The tabs of this report. */
function tabsOf(report) {
  return TABS.filter(({ needs }) => !needs || needs(report));
}

function makeTabs(app) {
  const tabs = tabsOf(app.report);
  for (const tab of tabs) {
    const { key } = tab;
    byId('tabs').append(
      button(tabName(app, tab), () => app.openTab(key), {
        id: `tab-${key}`,
        role: 'tab',
        'aria-controls': `panel-${key}`,
        'aria-selected': 'false',
        tabIndex: -1,
      }),
    );
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
    const at = tabs.findIndex(({ key }) => key === app.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    app.openTab(tabs[(to + tabs.length) % tabs.length].key);
    byId(`tab-${app.tab}`).focus();
  });
}

/** Show a tab, or the first tab if the name is unknown. Returns the tab. */
function showTab(app, wanted) {
  const tabs = tabsOf(app.report);
  const tab = tabs.find(({ key }) => key === wanted) ?? tabs[0];
  for (const { key } of tabs) {
    const chosen = key === tab.key;
    byId(`tab-${key}`).setAttribute('aria-selected', String(chosen));
    byId(`tab-${key}`).tabIndex = chosen ? 0 : -1;
    byId(`panel-${key}`).hidden = !chosen;
  }
  // Tabs are rendered on demand, because sorting 100,000 rows takes a moment.
  if (tab.render && !byId(`panel-${tab.key}`).hasChildNodes()) renderTab(app, tab.key);
  byId('tab-panels').scrollTop = 0;
  // On a phone the whole page scrolls, so scroll to the start of the tab.
  if (byId('panel').getBoundingClientRect().top < 0) byId('panel').scrollIntoView();
  return tab;
}

function renderTab(app, key) {
  const { render } = TABS.find((tab) => tab.key === key);
  if (render) byId(`panel-${key}`).replaceChildren(render(app));
}

/** Clear all tabs, and render the open one again. */
function redrawTabs(app) {
  for (const { key, render } of tabsOf(app.report)) {
    if (render && byId(`panel-${key}`).hasChildNodes()) byId(`panel-${key}`).replaceChildren();
  }
  renderTab(app, app.tab);
}
