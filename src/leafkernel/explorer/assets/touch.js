// Touch gestures on the map.

/** One finger pans, two fingers zoom, a tap selects. The library supports only the mouse. */
function listenToTouch(plot) {
  const { canvas } = plot;
  let start = null;
  const read = (touches) => {
    const box = canvas.getBoundingClientRect();
    const spots = [...touches].map((t) => [t.clientX - box.left, t.clientY - box.top]);
    const middle = [0, 1].map((i) => spots.reduce((sum, spot) => sum + spot[i], 0) / spots.length);
    const apart =
      spots.length > 1 ? Math.hypot(spots[0][0] - spots[1][0], spots[0][1] - spots[1][1]) : 0;
    return { middle, apart, fingers: spots.length };
  };
  const begin = (event) => {
    if (!event.touches.length) return;
    const moved = start !== null && (start.moved || event.touches.length > 1);
    start = { ...read(event.touches), camera: plot.camera(), moved };
  };
  canvas.addEventListener('touchstart', begin, { passive: true });
  canvas.addEventListener(
    'touchmove',
    (event) => {
      if (!start) return;
      event.preventDefault();
      const now = read(event.touches);
      const shift = [0, 1].map((i) => now.middle[i] - start.middle[i]);
      if (Math.hypot(...shift) > 8 || now.fingers > 1) start.moved = true;
      if (!start.moved) return;
      plot.atHome = false;
      const { x, y, distance } = start.camera;
      const closer = start.apart && now.apart ? now.apart / start.apart : 1;
      // Keep the points under the fingers.
      const pixel = (2 * distance) / plot.height;
      const offset = [start.middle[0] - plot.width / 2, start.middle[1] - plot.height / 2];
      const keep = 1 - 1 / closer;
      plot.lookAt(
        x + pixel * (offset[0] * keep - shift[0] / closer),
        y - pixel * (offset[1] * keep - shift[1] / closer),
        distance / closer,
        false,
      );
    },
    { passive: false },
  );
  canvas.addEventListener('touchend', (event) => {
    event.preventDefault(); // prevent mouse events, which would select a second time
    if (event.touches.length) return begin(event);
    if (start && !start.moved) {
      const row = plot.nearest(...start.middle, (dx, dy) => {
        const far = Math.hypot(dx, dy);
        return far < 28 ? far : Infinity;
      });
      if (row >= 0) plot.events.select(row);
    }
    start = null;
  });
  canvas.addEventListener('touchcancel', () => (start = null));
}
