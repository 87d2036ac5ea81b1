// DOM helpers. User data is inserted as text nodes, never as HTML.

function byId(id) {
  return document.getElementById(id);
}

/** Make an element: properties, `data-`/`aria-` attributes, `on` listeners, then children. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (name === 'style') {
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    } else if (name === 'class') element.className = value;
    else if (name.includes('-') || name === 'role' || name === 'scope' || name === 'colspan') {
      element.setAttribute(name, value);
    } else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function button(text, onClick, properties = {}) {
  return make('button', { type: 'button', ...properties, on: { click: onClick } }, text);
}

/** A bar with the length `share`. It repeats the number beside it. */
function bar(share, color) {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  const style = color ? { width, background: color } : { width };
  return make('span', { class: 'bar', 'aria-hidden': 'true' }, make('span', { style }));
}

/** A dot in the color of a class, if it has one. */
function swatch(color) {
  return color ? make('span', { class: 'swatch', style: { background: color } }) : null;
}

/** A horizontal scroller for a wide table, with shadows where there is more. */
function scroller(label, table) {
  const box = make(
    'div',
    { class: 'scroller', tabIndex: 0, role: 'region', 'aria-label': label },
    table,
  );
  const hint = make('p', { class: 'scroll-hint', hidden: true }, 'More columns: scroll sideways →');
  const frame = make('div', { class: 'scroll-frame' }, box);
  const look = () => {
    const rest = box.scrollWidth - box.clientWidth;
    hint.hidden = rest <= 1;
    frame.classList.toggle('more-left', box.scrollLeft > 1);
    frame.classList.toggle('more-right', rest - box.scrollLeft > 1);
  };
  box.addEventListener('scroll', look, { passive: true });
  new ResizeObserver(look).observe(box);
  return make('div', {}, hint, frame);
}

/** Run a function that may fail in a notebook frame or in a private window. */
function attempt(action, otherwise) {
  try {
    return action();
  } catch {
    return otherwise;
  }
}

function calmMotion() {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
