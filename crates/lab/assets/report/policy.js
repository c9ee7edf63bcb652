// Cases whose weights a policy decides: what the accesses could carry and what it estimates, its
// weights, and the throughput, as Figures 10 to 12 of Navarro-Ortiz et al. 2024 have them.

const steered = data.runs.filter((r, i) => data.cases[r.case].policy
  && data.runs.findIndex(o => o.case === r.case) === i);
const payload = run => data.cases[run.case].payload ?? 1;
const sum = vs => vs.some(v => v === null || v === undefined) ? null : vs.reduce((a, b) => a + b, 0);
const measured = (run, m) => run.series.filter(s => s[1][m]);
// Sum over the accesses, for each time.
const total = (run, m) => run.t.map((_, i) => sum(run.series.map(s => s[1][m]?.[i] ?? (m === 'mbps' ? 0 : null))));
const mean = vs => {
  const known = vs.filter(v => v !== null && v !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
};
// Points of a line, some 300 of them: single intervals are noise here.
function points(run, values, factor = 1) {
  const n = Math.ceil(run.t.length / 300);
  const out = [];
  for (let i = 0; i < run.t.length; i += n) {
    const v = mean(values.slice(i, i + n));
    out.push([run.t[Math.min(i + n, run.t.length) - 1], v === null ? null : v * factor]);
  }
  return out;
}
// Cases with weights of their own over the same links, to be compared with.
function besides(run) {
  const own = mean(total(run, 'capacity'));
  const same = r => Math.abs(mean(total(r, 'capacity')) - own) <= own * .002;
  return data.runs.filter(r => r.repeat === run.repeat && data.cases[r.case].weighted
    && !data.cases[r.case].policy && same(r)).slice(0, 3);
}
const besideColour = i => css(['--ink', '--a4', '--a6'][i]);
const line = (name, points, colour, more = {}) => ({
  name, type: 'line', symbol: 'none', showSymbol: false, connectNulls: false, emphasis: {disabled: true},
  itemStyle: {color: colour}, data: points, ...more,
  lineStyle: {width: 1.7, color: colour, ...more.lineStyle},
});
const dashed = {lineStyle: {type: 'dashed', width: 1.4}, z: 4};
// Behind what is to lie on it.
const band = {lineStyle: {width: 6, opacity: .3}, z: 1};
const CAN = 'the links could carry';

// Each figure: title, unit, entries of the legend, series, and the value of a row of the tooltip.
const FIGURES = [
  {
    title: 'Capacity of each access, and its estimate', unit: 'Mbit/s',
    entries: run => [
      ...measured(run, 'estimate').map(([a]) => ({name: a + ', estimated', shape: 'line', colour: accessColour(a)})),
      ...measured(run, 'capacity').map(([a]) => ({name: a + ', capacity', shape: 'band', colour: accessColour(a)})),
    ],
    series: run => [
      ...measured(run, 'estimate').map(([a, by]) => line(a + ', estimated', points(run, by.estimate), accessColour(a))),
      ...measured(run, 'capacity').map(([a, by]) =>
        line(a + ', capacity', points(run, by.capacity, payload(run)), accessColour(a), band)),
    ],
  },
  {
    title: 'Weights: the share of each access', unit: '%', max: 100,
    entries: run => [
      ...measured(run, 'weight').map(([a]) => ({name: a, shape: 'line', colour: accessColour(a)})),
      ...besides(run).slice(-1).flatMap(r => measured(r, 'weight').map(([a]) =>
        ({name: a + ', ' + data.cases[r.case].name, shape: 'dashed', colour: accessColour(a)}))),
    ],
    series: run => {
      const shares = (r, a, by) => {
        const all = total(r, 'weight');
        return r.t.map((t, i) => [t, by.weight[i] === null || !all[i] ? null : by.weight[i] / all[i] * 100]);
      };
      return [
        ...measured(run, 'weight').map(([a, by]) => line(a, shares(run, a, by), accessColour(a), {step: 'end'})),
        ...besides(run).slice(-1).flatMap(r => measured(r, 'weight').map(([a, by]) =>
          line(a + ', ' + data.cases[r.case].name, shares(r, a, by), accessColour(a), {step: 'end', ...dashed}))),
      ];
    },
  },
  {
    title: 'Throughput', unit: 'Mbit/s',
    entries: run => [
      ...measured(run, 'mbps').map(([a]) => ({name: a, shape: 'box', colour: accessColour(a)})),
      ...(measured(run, 'capacity').length ? [{name: CAN, shape: 'dashed', colour: css('--ink')}] : []),
      ...besides(run).map((r, i) => ({name: data.cases[r.case].name, shape: 'line', colour: besideColour(i)})),
    ],
    series: run => [
      ...measured(run, 'mbps').map(([a, by]) => line(a, points(run, by.mbps, payload(run)), accessColour(a),
        {stack: 'all', lineStyle: {width: 0}, areaStyle: {color: accessColour(a), opacity: .88}})),
      line(CAN, points(run, total(run, 'capacity'), payload(run)), css('--ink'), dashed),
      ...besides(run).map((r, i) => line(data.cases[r.case].name, points(r, total(r, 'mbps'), payload(r)),
        besideColour(i), {z: 5, lineStyle: {width: 1.4}})),
    ],
  },
];

function figureOption(run, figure) {
  const {option} = base();
  const last = figure === FIGURES.at(-1);
  return {
    ...option,
    ...timeAxes(run.t.at(-1), {group: true, last, max: figure.max}),
    tooltip: {...option.tooltip, trigger: 'axis', formatter: ps => ps.length ? tip(
      ps[0].value[0].toFixed(1) + ' s · ' + figure.unit,
      ps.map(p => [p.color, p.seriesName, short(p.value[1])])) : ''},
    series: figure.series(run),
  };
}

function drawPolicies() {
  const root = $('#policies');
  if (!root) return;
  root.replaceChildren(...steered.map(run => {
    const c = data.cases[run.case];
    const card = el('figure', {className: 'panel run wide'});
    const facts = c.goodput ? c.texts.goodput + (c.ceiling ? ' of ' + short(c.ceiling) : '') + ' Mbit/s'
      + (c.texts.of_wire ? ' · ' + c.texts.of_wire : '') : '';
    card.append(el('header', {}, el('h3', {textContent: c.name}), el('p', {textContent: facts})));
    for (const figure of FIGURES) {
      card.append(el('h4', {textContent: figure.title}));
      if (!figure.entries(run).length) {
        card.append(el('p', {className: 'hint', textContent: 'Not known for this case.'}));
        continue;
      }
      const legend = el('div', {className: 'legend'}), box = el('div', {className: 'chart'});
      box.setAttribute('role', 'img');
      box.setAttribute('aria-label', `${figure.title}, of ${c.name} over time`);
      card.append(legend, box);
      new Chart(box, legend, () => figureOption(run, figure), () => figure.entries(run),
        {unit: figure.unit, group: 'policy' + run.case});
    }
    return card;
  }));
}
