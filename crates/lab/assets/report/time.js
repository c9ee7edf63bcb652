// Per case over time: one measure at a time, or all of one case together.

const MEASURES = Object.fromEntries(data.measures.map(m => [m.key, m]));
const isStacked = m => MEASURES[m].shape === 'stacked';
const EVENTS = 'events';
const measureOf = run => Object.keys(MEASURES).filter(m => run.series.some(s => s[1][m]));
const allMeasures = Object.keys(MEASURES).filter(m => data.runs.some(r => r.series.some(s => s[1][m])));
const view = {measure: data.cases.some(c => c.bulk) || !allMeasures.includes('rtt') ? allMeasures[0] : 'rtt', repeat: 1, same: false};

function peak(run, m) {
  let top = 0;
  run.t.forEach((_, i) => {
    const v = run.series.map(s => s[1][m]?.[i] ?? 0);
    top = Math.max(top, isStacked(m) ? v.reduce((a, b) => a + b, 0) : Math.max(...v));
  });
  return top;
}
// A round number not below v.
const roundUp = v => {
  const p = 10 ** Math.floor(Math.log10(v || 1));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map(k => k * p).find(x => x >= v * .999);
};

const timeEntries = (run, m) => [
  ...run.series.filter(s => s[1][m]).map(s => ({name: s[0], shape: isStacked(m) ? 'box' : 'line', colour: accessColour(s[0])})),
  ...(run.events.length || run.states.length ? [{name: EVENTS, shape: 'tick', colour: css('--soft')}] : []),
];

// Axes over `end` seconds. In a `group` the charts stand under each other: their axes line up,
// and the `last` has the handles to zoom all of them.
function timeAxes(end, {group, last, max, top = 10}) {
  const {axis, soft} = base();
  const wide = !narrow() && group;
  return {
    grid: {left: wide ? 50 : 4, right: 14, top, bottom: wide ? last ? 46 : 24 : 6, containLabel: !wide},
    xAxis: {...axis, type: 'value', min: 0, max: end, splitLine: {show: false},
      axisLabel: {...axis.axisLabel, showMaxLabel: false, formatter: v => v + ' s'}},
    yAxis: {...axis, type: 'value', min: 0, max, axisLabel: {...axis.axisLabel, formatter: tick}},
    dataZoom: wide ? [{type: 'slider', show: last, height: 16, bottom: 6, borderColor: 'transparent', backgroundColor: css('--faint'),
      fillerColor: css('--pale'), handleStyle: {color: css('--soft'), borderColor: css('--soft')}, moveHandleSize: 0,
      dataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}},
      selectedDataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}}, textStyle: {color: soft, fontSize: 11},
      labelFormatter: v => v.toFixed(1) + ' s'}] : [],
  };
}

function timeOption(box, run, m, group, last) {
  const {option, soft} = base();
  const stacked = isStacked(m), unit = MEASURES[m].unit;
  const few = run.events.length <= (group ? 8 : 3) && !narrow();
  const series = run.series.filter(s => s[1][m]).map(([a, by]) => ({
    name: a, type: 'line', symbol: 'none', showSymbol: false, stack: stacked ? 'all' : undefined,
    step: MEASURES[m].shape === 'steps' ? 'end' : false, connectNulls: false,
    itemStyle: {color: accessColour(a)},
    lineStyle: {width: stacked ? 0 : 1.7, color: accessColour(a)},
    areaStyle: stacked ? {color: accessColour(a), opacity: .88} : undefined,
    emphasis: {disabled: true},
    data: run.t.map((t, i) => [t, by[m][i]]),
  }));
  // A label is 130 px wide, in the middle over its line: those that would lie on the one
  // before are left to the tooltip.
  const end = run.t[run.t.length - 1];
  let before = -Infinity;
  const labelled = run.events.map(e => {
    const x = e[0] / end * box.clientWidth;
    if (x - before < 138) return false;
    before = x;
    return true;
  });
  series.push({
    name: EVENTS, type: 'line', data: [], itemStyle: {color: soft}, symbol: 'none',
    markLine: {
      symbol: 'none', animation: false, lineStyle: {color: soft, type: 'dashed', width: 1, opacity: run.events.length > 12 ? .35 : .8},
      label: {show: few, color: soft, fontSize: 11, position: 'end', distance: 4, width: 130,
        overflow: 'truncate', formatter: p => p.data.note},
      tooltip: {formatter: p => tip(short(p.data.xAxis) + ' s', [[null, p.data.note, '']])},
      data: run.events.map((e, i) => ({xAxis: e[0], note: (e[1] ? e[1] + ' ' : '') + e[2],
        label: {show: few && labelled[i]}})),
    },
    markArea: {
      silent: true, animation: false,
      data: run.states.map(s => [{xAxis: s[1], itemStyle: {color: accessColour(s[0]), opacity: .13}}, {xAxis: s[2]}]),
    },
  });
  const max = view.same ? roundUp(Math.max(...data.runs.map(r => peak(r, m)))) : undefined;
  return {
    ...option,
    ...timeAxes(end, {group, last, max, top: few && run.events.length ? 24 : 10}),
    tooltip: {...option.tooltip, trigger: 'axis', formatter: ps => {
      const own = ps.filter(p => p.seriesName !== EVENTS);
      if (!own.length) return '';
      const rows = own.map(p => [p.color, p.seriesName, short(p.value[1])]);
      if (stacked && own.length > 1) {
        rows.push([null, 'together', short(own.reduce((s, p) => s + (p.value[1] ?? 0), 0))]);
      }
      const near = run.events.filter(e => Math.abs(e[0] - own[0].value[0]) < .06);
      near.slice(0, 4).forEach(e => rows.push([null, (e[1] ? e[1] + ' ' : '') + e[2], '']));
      return tip(own[0].value[0].toFixed(1) + ' s' + (unit ? ' · ' + unit : ''), rows);
    }},
    series,
  };
}

const open = new Set();
let cards = [];
function drawRuns() {
  cards.forEach(c => c.drop());
  cards = [];
  const root = $('#runs');
  if (!root) return;
  const shown = data.cases.map((c, i) => data.runs.find(r => r.case === i && r.repeat === view.repeat)
    ?? data.runs.find(r => r.case === i)).filter(Boolean);
  root.replaceChildren(...shown.map(run => {
    const c = data.cases[run.case];
    const wide = open.has(run.case);
    const card = el('figure', {className: 'panel run' + (wide ? ' wide' : '')});
    const more = el('button', {type: 'button', textContent: wide ? 'Less' : 'All measures',
      onclick: () => { wide ? open.delete(run.case) : open.add(run.case); drawRuns();
        $('#runs').children[shown.indexOf(run)].querySelector('header button').focus(); }});
    more.setAttribute('aria-expanded', wide);
    const facts = c.bulk && c.goodput ? c.texts.goodput + ' Mbit/s'
      : c.latency ? c.texts.latency + ' ms' : '';
    card.append(el('header', {}, el('h3', {textContent: c.name}), el('p', {textContent: facts}), more));
    const measures = wide ? measureOf(run) : [view.measure];
    for (const m of measures) {
      if (wide) card.append(el('h4', {textContent: MEASURES[m].title}));
      if (!run.series.some(s => s[1][m])) {
        card.append(el('p', {className: 'hint', textContent: 'Not measured for this case, or zero throughout.'}));
        continue;
      }
      const legend = el('div', {className: 'legend'}), box = el('div', {className: 'chart'});
      box.setAttribute('role', 'img');
      box.setAttribute('aria-label', `${MEASURES[m].title} of ${c.name} over time, per access`);
      card.append(legend, box);
      cards.push(new Chart(box, legend,
        () => timeOption(box, run, m, wide, m === measures.at(-1)), () => timeEntries(run, m),
        {unit: MEASURES[m].unit, group: wide ? 'case' + run.case : undefined}));
    }
    return card;
  }));
  $('#explain').textContent = MEASURES[view.measure].explanation;
  whenIdle(drawNext);
}
