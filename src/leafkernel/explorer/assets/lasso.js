// The lasso: a line drawn around points, with the mouse, a pen or a finger.

/** Whether a point is inside a polygon, based on the number of sides to its right. */
function isInside(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

/** A layer for drawing a lasso. It calls `done(mask)`, or `done(null)` if the lasso is empty. */
class Lasso {
  constructor(plot, done) {
    this.plot = plot;
    this.done = done;
    this.line = [];
    this.shape = document.createElementNS(SVG, 'polygon');
    this.layer = document.createElementNS(SVG, 'svg');
    this.layer.id = 'lasso-layer';
    this.layer.append(this.shape);
    plot.box.append(this.layer);
    this.layer.addEventListener('pointerdown', (event) => {
      this.layer.setPointerCapture(event.pointerId);
      this.line = [this.spot(event)];
    });
    this.layer.addEventListener('pointermove', (event) => {
      if (this.line.length) this.draw(this.spot(event));
    });
    this.layer.addEventListener('pointerup', () => this.end());
    this.layer.addEventListener('pointercancel', () => this.remove());
  }

  spot(event) {
    const box = this.layer.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  draw(spot) {
    this.line.push(spot);
    this.shape.setAttribute('points', this.line.map((each) => each.join()).join(' '));
  }

  end() {
    const { line, plot } = this;
    this.remove();
    if (line.length < 3) return this.done(null);
    const mask = new Uint8Array(plot.report.n);
    const count = plot.eachPosition((row, x, y) => (mask[row] = isInside(line, x, y) ? 1 : 0));
    this.done(count ? mask : null);
  }

  remove() {
    this.layer.remove();
  }
}
