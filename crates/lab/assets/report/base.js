// What every chart shares: the data, colours by theme, the legend as buttons.
const data = JSON.parse(document.getElementById('data').textContent);
const $ = (s, root = document) => root.querySelector(s);
const narrow = () => window.innerWidth < 640;

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const accessColour = a => css('--a' + Math.max(0, data.accesses.indexOf(a)) % 8);

// Text of others never becomes markup.
const esc = s => String(s).replace(/[&<>"']/g, c =>
  ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'})[c]);
const el = (tag, props = {}, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};
// Three significant digits, whole from 100 up, as in the tables.
const short = v => {
  if (v === null || v === undefined || !isFinite(v)) return '–';
  const a = Math.abs(v);
  return v.toFixed(a >= 99.95 || v === 0 ? 0 : a >= 9.995 ? 1 : a >= .9995 ? 2 : 3);
};
const tick = v => String(+(+v).toPrecision(4));

// The lines of a text of this size in px that is to be no wider than `room` px: broken
// between words, and inside of those that are too long.
const pen = document.createElement('canvas').getContext('2d');
function wrapped(text, room, size) {
  pen.font = size + 'px ' + getComputedStyle(document.body).fontFamily;
  const fits = s => pen.measureText(s).width <= room;
  const lines = [''];
  for (let word of String(text).split(/(?<=[ ,:=/-]|\.(?!\d))/)) {
    if (fits(lines.at(-1) + word.trimEnd())) { lines[lines.length - 1] += word; continue; }
    if (lines.at(-1)) lines.push('');
    while (!fits(word) && word.length > 1) {
      let n = word.length - 1;
      while (n > 1 && !fits(word.slice(0, n))) n--;
      lines[lines.length - 1] = word.slice(0, n);
      lines.push('');
      word = word.slice(n);
    }
    lines[lines.length - 1] = word;
  }
  return lines.map(l => l.trim());
}

const tip = (head, rows) => '<div class="tip"><b>' + esc(head) + '</b><table>' + rows.map(
  ([colour, name, value]) => '<tr><td>' + (colour
    ? '<i class="dot" style="background:' + colour + '"></i>' : '') + esc(name)
    + '</td><td class="num">' + esc(value) + '</td></tr>').join('') + '</table></div>';

// Options that follow the theme.
const base = () => {
  const ink = css('--ink'), soft = css('--soft'), line = css('--line');
  const axis = {
    axisLine: {lineStyle: {color: line}}, axisTick: {show: false},
    axisLabel: {color: soft, fontSize: 12, hideOverlap: true},
    splitLine: {lineStyle: {color: line}},
    nameTextStyle: {color: soft, fontSize: 12},
  };
  return {
    axis, ink, soft, line,
    option: {
      animation: false,
      backgroundColor: 'transparent',
      textStyle: {fontFamily: getComputedStyle(document.body).fontFamily, color: ink},
      tooltip: {
        confine: true, backgroundColor: css('--surface'), borderColor: line,
        textStyle: {color: ink, fontSize: 12.5}, padding: [8, 11],
        extraCssText: 'max-width:min(380px,86vw);white-space:normal;overflow-wrap:anywhere',
        axisPointer: {lineStyle: {color: soft}, crossStyle: {color: soft}},
      },
    },
  };
};

// Shapes of the legend.
const shapes = {
  box: c => `<rect x="1" y="1" width="10" height="10" rx="2.5" fill="${c}"/>`,
  line: c => `<path d="M0 6h12" stroke="${c}" stroke-width="2.5"/>`,
  dashed: c => `<path d="M0 6h12" stroke="${c}" stroke-width="2.5" stroke-dasharray="3.4 2"/>`,
  band: c => `<path d="M0 6h12" stroke="${c}" stroke-width="6" opacity=".35"/>`,
  tick: c => `<path d="M6 0v12" stroke="${c}" stroke-width="3"/>`,
  diamond: c => `<path d="M6 0l6 6-6 6-6-6z" fill="${c}"/>`,
  dot: c => `<circle cx="6" cy="6" r="3" fill="${c}"/>`,
};

// A chart: `build` makes its option, `entries` its legend ({name, shape, colour});
// charts of one group move together. Drawn when it comes near, or when there is
// nothing else to do.
const charts = [];
class Chart {
  constructor(box, legend, build, entries, {unit, group} = {}) {
    Object.assign(this, {box, legend, build, entries, unit, group, hidden: new Set()});
    charts.push(this);
    this.seen = new IntersectionObserver(s => {
      if (s.some(e => e.isIntersecting)) this.show();
    }, {rootMargin: '400px'});
    this.seen.observe(box);
    new ResizeObserver(() => this.chart && this.fit()).observe(box);
    this.drawLegend();
  }
  show() {
    if (this.chart) return;
    this.seen.disconnect();
    this.chart = echarts.init(this.box, null, {renderer: 'svg'});
    this.box.chart = this.chart;
    if (this.group) { this.chart.group = this.group; echarts.connect(this.group); }
    this.draw();
  }
  fit() {
    const was = this.wasNarrow;
    if (was !== narrow()) this.draw(); else this.chart.resize();
  }
  draw() {
    this.wasNarrow = narrow();
    if (!this.chart) return;
    const o = this.build(this);
    o.legend = {show: false, selected: Object.fromEntries([...this.hidden].map(n => [n, false]))};
    this.chart.resize();
    this.chart.setOption(o, true);
  }
  drawLegend() {
    if (!this.legend) return;
    const unit = this.unit ? [el('span', {className: 'unit', textContent: this.unit})] : [];
    this.legend.replaceChildren(...unit, ...this.entries().map(({name, shape, colour}) => {
      const b = el('button', {type: 'button'});
      b.dataset.series = name;
      b.innerHTML = `<svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">${shapes[shape](colour)}</svg>`;
      b.append(name);
      b.setAttribute('aria-pressed', !this.hidden.has(name));
      b.title = 'Show or hide';
      b.onclick = () => {
        this.show();
        if (!this.hidden.delete(name)) this.hidden.add(name);
        b.setAttribute('aria-pressed', !this.hidden.has(name));
        this.chart.dispatchAction({type: 'legendToggleSelect', name});
      };
      return b;
    }));
  }
  restyle() { this.drawLegend(); this.draw(); }
  drop() {
    this.seen.disconnect();
    if (this.chart) this.chart.dispose();
    charts.splice(charts.indexOf(this), 1);
  }
}

const whenIdle = f => window.requestIdleCallback
  ? requestIdleCallback(f, {timeout: 300}) : setTimeout(f, 50);
const drawNext = () => {
  const next = charts.find(c => !c.chart);
  if (next) { next.show(); whenIdle(drawNext); }
};
