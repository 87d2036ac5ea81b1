// The map. The plotting library draws the points, and an SVG layer draws the selected row.

const SVG = 'http://www.w3.org/2000/svg';

/** Coordinates scaled to [-1, 1] with one factor for both axes, and half of their extents. */
function unitCoordinates(report) {
  const axes = [report.embedding.x, report.embedding.y].map((values) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return { values, middle: (low + high) / 2, half: (high - low) / 2 };
  });
  const scale = Math.max(axes[0].half, axes[1].half) || 1;
  const unit = ({ values, middle }) =>
    Float32Array.from(values, (value) => (Number.isFinite(value) ? (value - middle) / scale : 0));
  return {
    x: unit(axes[0]),
    y: unit(axes[1]),
    halfX: axes[0].half / scale || 0.5,
    halfY: axes[1].half / scale || 0.5,
  };
}

function defaultPointSize(n) {
  if (n <= 500) return 8;
  if (n <= 2000) return 6;
  if (n <= 10000) return 4.5;
  return n <= 40000 ? 3.5 : 2.5;
}

/** A pseudorandom order of the rows, because files are often sorted by class. */
function shuffledRows(n) {
  const rows = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 1;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1);
    [rows[i], rows[j]] = [rows[j], rows[i]];
  }
  return rows;
}

class Plot {
  /** @param events object with `hover(row, x, y)`, `select(row)`, `moved()` */
  constructor(report, events) {
    this.report = report;
    this.events = events;
    this.box = byId('plot');
    this.canvas = byId('canvas');
    this.overlay = byId('overlay');
    this.points = unitCoordinates(report);
    this.order = shuffledRows(report.n);
    this.selected = -1;
    this.neighbors = [];
    this.atHome = true;
    this.drawing = Promise.resolve();
    this.size = defaultPointSize(report.n);
    const { width, height } = this.measure();
    const many = report.n > 3000;
    this.scatter = createScatterplot({
      canvas: this.canvas,
      width,
      height,
      pointSize: this.size,
      pointSizeSelected: 2,
      pointOutlineWidth: 0,
      antiAliasing: 0.8,
      opacity: 0.9,
      opacityBy: many ? 'density' : null,
      opacityByDensityFill: 0.35,
      opacityInactiveScale: many ? 0.5 : 0.4,
      colorBy: 'valueA',
      actionKeyMap: {}, // no rotation, and our own lasso, which also works with touch
      deselectOnDblClick: false,
      deselectOnEscape: false,
      spatialIndexUseWorker: false, // fast enough, and frames may forbid workers
      cameraDistance: this.homeDistance(),
    });
    this.scatter.subscribe('pointover', (row) => events.hover(row, ...this.position(row)));
    this.scatter.subscribe('pointout', () => events.hover(-1));
    this.scatter.subscribe('select', ({ points }) => events.select(points[0]));
    this.scatter.subscribe('view', () => this.viewChanged());
    this.scatter.subscribe('drawing', () => drawOverlay(this));
    for (const name of ['wheel', 'mousedown']) {
      this.canvas.addEventListener(name, () => (this.atHome = false), {
        passive: true,
      });
    }
    new ResizeObserver(() => this.resize()).observe(this.box);
    listenToTouch(this);
  }

  measure() {
    this.width = Math.max(this.box.clientWidth, 50);
    this.height = Math.max(this.box.clientHeight, 50);
    return { width: this.width, height: this.height };
  }

  resize() {
    const { width, height } = this;
    const now = this.measure();
    if (now.width === width && now.height === height) return;
    this.scatter.set(now);
    if (this.atHome) this.home(false);
  }

  viewChanged() {
    this.events.hover(-1);
    this.events.moved();
  }

  homeDistance() {
    const { halfX, halfY } = this.points;
    return Math.max(halfY, (halfX * this.height) / this.width) * 1.12;
  }

  /** The camera: the center of the view and half of its height. */
  camera() {
    const view = this.scatter.get('cameraView');
    const distance = 1 / view[5];
    return { x: -view[12] * distance, y: -view[13] * distance, distance };
  }

  /** The camera after the current animation. */
  aimed() {
    return this.aim ?? this.camera();
  }

  async lookAt(x, y, distance, smooth = true) {
    const aim = { x, y, distance: Math.min(Math.max(distance, 1e-4), 20) };
    this.aim = aim;
    this.events.moved(); // the library has no event for its own animations
    const transition = smooth && !calmMotion();
    await this.scatter.zoomToLocation([x, y], aim.distance, {
      transition,
      transitionDuration: 300,
    });
    if (this.aim === aim) this.aim = null;
  }

  home(smooth = true) {
    this.atHome = true;
    this.lookAt(0, 0, this.homeDistance(), smooth);
  }

  /** Show the view `[x, y, distance]` of a link, or all rows. */
  show(view, smooth = true) {
    if (!view) return this.home(smooth);
    this.atHome = false;
    this.lookAt(...view, smooth);
  }

  zoom(factor) {
    this.atHome = false;
    const { x, y, distance } = this.aimed();
    this.lookAt(x, y, distance / factor);
  }

  /** Zoom to a row and its neighbors. */
  zoomTo(rows) {
    this.atHome = false;
    let half = 0.02;
    const [x, y] = [this.points.x[rows[0]], this.points.y[rows[0]]];
    for (const row of rows) {
      half = Math.max(half, Math.abs(this.points.y[row] - y));
      half = Math.max(half, (Math.abs(this.points.x[row] - x) * this.height) / this.width);
    }
    this.lookAt(x, y, half * 1.3);
  }

  /** Move the camera if the row is not visible. */
  bringIntoView(row) {
    const { x, y, distance } = this.aimed(); // the end of the current animation
    const scale = this.height / 2 / distance;
    const margin = 24;
    const inside =
      Math.abs(this.points.x[row] - x) * scale < this.width / 2 - margin &&
      Math.abs(this.points.y[row] - y) * scale < this.height / 2 - margin;
    if (inside) return;
    this.atHome = false;
    this.lookAt(this.points.x[row], this.points.y[row], distance);
  }

  /** The position of a row in pixels. */
  position(row) {
    const view = this.scatter.get('cameraView');
    const x = ((this.points.x[row] * view[0] + view[12]) * this.height) / this.width;
    const y = this.points.y[row] * view[5] + view[13];
    return [((1 + x) / 2) * this.width, ((1 - y) / 2) * this.height];
  }

  /** Add up `visit(row, x, y)` over all rows, where x and y are pixels. */
  eachPosition(visit) {
    const view = this.scatter.get('cameraView');
    const scale = this.height / 2;
    const { x, y } = this.points;
    let sum = 0;
    for (let row = 0; row < this.report.n; row++) {
      sum += visit(
        row,
        this.width / 2 + (x[row] * view[0] + view[12]) * scale,
        this.height / 2 - (y[row] * view[5] + view[13]) * scale,
      );
    }
    return sum;
  }

  /** The row with the smallest `cost(dx, dy)` to a pixel. An infinite cost excludes a row. */
  nearest(px, py, cost) {
    let [best, found] = [Infinity, -1];
    this.eachPosition((row, x, y) => {
      const price = cost(x - px, y - py, row);
      if (price < best) [best, found] = [price, row];
      return 0;
    });
    return found;
  }

  /** The next row in a direction: close, and straight ahead rather than aside. */
  step(row, stepX, stepY) {
    if (row < 0) {
      return this.nearest(this.width / 2, this.height / 2, (dx, dy) => Math.hypot(dx, dy));
    }
    const [px, py] = this.position(row);
    return this.nearest(px, py, (dx, dy) => {
      const ahead = dx * stepX + dy * stepY;
      const aside = Math.abs(dx * stepY) + Math.abs(dy * stepX);
      return ahead > 0.01 && aside <= ahead * 1.2 ? ahead + 2 * aside : Infinity;
    });
  }

  /** Draw the points with a color scale. Rows that are not in `mask` are faint. */
  draw(scale, mask, theme) {
    // The library ignores calls while it draws. Wait for it, and then draw only the latest request.
    this.wanted = { scale, mask, theme };
    const { wanted } = this;
    this.drawing = this.drawing.then(() => wanted === this.wanted && this.drawNow(wanted));
    return this.drawing;
  }

  async drawNow({ scale, mask, theme }) {
    const ground = getComputedStyle(document.body).getPropertyValue('--plot').trim();
    const colors = [...scale.colors, FAINT[theme]];
    const faint = scale.colors.length;
    const codes = mask ? scale.codes.map((code, row) => (mask[row] ? code : faint)) : scale.codes;
    this.scatter.set({
      backgroundColor: ground,
      pointColor: colors,
      pointColorActive: colors,
      pointColorHover: colors,
    });
    const drawn = this.scatter.draw(
      { x: this.points.x, y: this.points.y, valueA: codes },
      { zDataType: 'categorical' },
    );
    await drawn;
    this.scatter.set({ pointOrder: this.orderFor(scale, mask) });
    this.showSelection();
  }

  /** The order of drawing. Selected rows or larger numbers are drawn last, on top. */
  orderFor(scale, mask) {
    const { ground } = scale.column;
    const isPlain = scale.kind === 'class' && ground === undefined;
    if (isPlain && !mask) return [...this.order];
    const level = (row) => {
      if (mask) return mask[row];
      if (scale.kind === 'number') return scale.codes[row];
      return scale.column.data[row] === ground ? 0 : 1;
    };
    const levels = Math.max(2, scale.colors.length);
    const groups = Array.from({ length: levels }, () => []);
    for (const row of this.order) groups[level(row)].push(row);
    return groups.flat();
  }

  setPointSize(size) {
    this.size = size;
    this.scatter.set({ pointSize: size });
  }

  select(row, neighbors) {
    this.selected = row;
    this.neighbors = neighbors;
    this.showSelection();
    drawOverlay(this);
  }

  showSelection() {
    const quiet = { preventEvent: true };
    if (this.selected < 0) this.scatter.deselect(quiet);
    else this.scatter.select(this.ringed(), quiet);
  }

  /** The rows with a ring: the selected row and its neighbors. */
  ringed() {
    return this.selected < 0 ? [] : [this.selected, ...this.neighbors.map(({ row }) => row)];
  }

  /** Highlight a row of a table; -1 for none. */
  point(row) {
    this.pointed = row;
    drawOverlay(this);
  }
}

/** Whether the browser supports WebGL. */
function canDraw() {
  const context = attempt(() => document.createElement('canvas').getContext('webgl'), null);
  return Boolean(context && context.getExtension('OES_texture_float'));
}
