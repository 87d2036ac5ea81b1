// Start the page.

async function main() {
  try {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old');
    const app = new App(reportOf(await decodeReport(byId('data').textContent)));
    byId('data').remove(); // free the memory of the encoded text
    await app.start();
    window.leafkernel = {
      select: (row) => app.select(row),
      colorBy: (name) => app.colorBy(name),
      openTab: (key) => app.openTab(key),
      home: () => app.plot?.home(false),
      position: (row) => app.plot?.position(row),
      state: () => ({
        row: app.row,
        color: app.color.key,
        tab: app.tab,
        only: app.shown.only && [...app.shown.only],
        shown: app.shown.mask()?.reduce((sum, one) => sum + one, 0) ?? app.report.n,
        scaling: app.scale.scaling ?? null,
        camera: app.plot?.camera() ?? null,
        theme: app.theme,
        webgl: app.plot !== null,
        n: app.report.n,
      }),
    };
    requestAnimationFrame(() => {
      window.leafkernelReadyMs = performance.now();
      document.documentElement.dataset.ready = 'true';
    });
  } catch (error) {
    byId('plot-message').hidden = false;
    byId('plot-message').textContent = `The page could not read its data: ${error.message}.`;
    document.documentElement.dataset.ready = 'failed';
    throw error;
  }
}

main();
