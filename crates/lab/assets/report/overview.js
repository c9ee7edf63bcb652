// Goodput per case, latency distributions, recoveries.

const bulk = data.cases.filter(c => c.bulk && c.goodput && !c.failed);
const usedBy = cases => data.accesses.filter(a => cases.some(c => c.share[a] > 0));
const NAMES = {ceiling: 'what the wire allows', best: data.cases.some(c => c.alone.length) ? 'best measured alone' : 'best single access',
  paper: 'paper', each: 'each repeat'};

function goodputEntries() {
  const has = f => bulk.some(f);
  return [
    ...usedBy(bulk).map(a => ({name: a, shape: 'box', colour: accessColour(a)})),
    ...(has(c => c.ceiling) ? [{name: NAMES.ceiling, shape: 'box', colour: css('--pale')}] : []),
    ...(has(c => c.best) ? [{name: NAMES.best, shape: 'tick', colour: css('--ink')}] : []),
    ...(has(c => c.each.length > 1) ? [{name: NAMES.each, shape: 'dot', colour: css('--ink')}] : []),
    ...(has(c => c.paper) || data.paper_only.length
      ? [{name: NAMES.paper, shape: 'diamond', colour: css('--paper')}] : []),
  ];
}

function goodputOption(self) {
  const {option, axis, ink, soft} = base();
  const rows = [...bulk.map(c => c.name), ...data.paper_only.map(p => p[0])];
  const n = bulk.length;
  const bar = narrow() ? 14 : 18;
  // As many lines as the longest name takes: rows are as high as that.
  const size = narrow() ? 11.5 : 13, room = Math.min(210, self.box.clientWidth * .3);
  const names = rows.map(name => wrapped(name, room, size));
  const lines = Math.max(1, ...names.map(l => l.length));
  self.box.style.height = rows.length * Math.max(bar + 20, lines * 14 + 8) + 30 + 'px';
  const series = [];
  series.push({
    name: NAMES.ceiling, type: 'bar', barWidth: bar, barGap: '-100%', z: 1, silent: true,
    itemStyle: {color: css('--pale'), borderRadius: 3},
    data: bulk.map(c => c.ceiling ?? null),
  });
  const parts = usedBy(bulk);
  parts.forEach(a => series.push({
    name: a, type: 'bar', stack: 'goodput', barWidth: bar, z: 2,
    itemStyle: {color: accessColour(a)},
    data: bulk.map(c => c.goodput[0] * (c.share[a] ?? 0) || null),
  }));
  series.push({
    name: NAMES.best, type: 'scatter', symbol: 'rect', symbolSize: [3, bar + 8], z: 4,
    itemStyle: {color: ink, borderColor: css('--surface'), borderWidth: 1},
    data: bulk.flatMap((c, i) => c.best ? [[c.best, i]] : []),
  });
  series.push({
    name: NAMES.each, type: 'scatter', symbolSize: 4, z: 5,
    itemStyle: {color: ink, opacity: .55},
    data: bulk.flatMap((c, i) => c.each.length > 1 ? c.each.map(v => [v, i]) : []),
  });
  series.push({
    name: NAMES.paper, type: 'scatter', symbol: 'diamond', symbolSize: 13, z: 6,
    itemStyle: {color: css('--paper'), borderColor: css('--surface'), borderWidth: 1.5},
    data: [...bulk.flatMap((c, i) => c.paper ? [[c.paper, i]] : []),
      ...data.paper_only.map((p, i) => [p[1], n + i])],
  });
  // The number at the end of each row.
  const end = i => i < n
    ? Math.max(bulk[i].goodput[2], bulk[i].ceiling ?? 0, bulk[i].best ?? 0, bulk[i].paper ?? 0)
    : data.paper_only[i - n][1];
  series.push({
    type: 'scatter', symbolSize: 1, silent: true, z: 7, itemStyle: {color: 'transparent'}, tooltip: {show: false},
    data: rows.map((_, i) => [end(i), i]),
    label: {
      show: true, position: 'right', distance: 10, fontSize: 12.5, color: ink,
      formatter: p => {
        const c = bulk[p.dataIndex];
        if (!c) return '{s|' + short(data.paper_only[p.dataIndex - n][1]) + '}';
        const part = c.texts.of_wire ? ' {s|' + c.texts.of_wire + '}' : '';
        return '{b|' + c.texts.goodput + '}' + (narrow() ? '' : part);
      },
      rich: {b: {fontWeight: 600, color: ink, fontSize: 12.5}, s: {color: soft, fontSize: 12.5}},
    },
  });
  return {
    ...option,
    grid: {left: 4, right: narrow() ? 52 : 96, top: 4, bottom: 2, containLabel: true},
    xAxis: {...axis, type: 'value', splitNumber: narrow() ? 3 : 6, axisLabel: {...axis.axisLabel,
      formatter: tick}},
    yAxis: {...axis, type: 'category', inverse: true, data: rows.map((_, i) => i),
      splitLine: {show: false},
      axisLabel: {...axis.axisLabel, color: ink, hideOverlap: false, interval: 0,
        lineHeight: 14, formatter: i => names[i].join('\n'), fontSize: size}},
    tooltip: {...option.tooltip, trigger: 'axis', axisPointer: {type: 'shadow', shadowStyle: {color: css('--faint'), opacity: .4}},
      formatter: ps => {
        const i = +ps[0].axisValue;
        const c = bulk[i];
        if (!c) return tip(rows[i], [[css('--paper'), 'paper', short(data.paper_only[i - n][1]) + ' Mbit/s']]);
        const list = [[null, 'goodput', c.texts.goodput + ' Mbit/s']];
        if (c.each.length > 1) list.push([null, 'least – most', short(c.goodput[1]) + ' – ' + short(c.goodput[2])]);
        usedBy([c]).forEach(a => list.push([accessColour(a), a, short(c.goodput[0] * c.share[a])]));
        if (c.ceiling) list.push([css('--pale'), NAMES.ceiling, short(c.ceiling)]);
        if (c.best) list.push([css('--ink'), NAMES.best + (c.alone.length ? ' (' + c.alone.join(', ') + ')' : ''), short(c.best)]);
        if (c.paper) list.push([css('--paper'), 'paper', short(c.paper)]);
        return tip(c.name, list);
      }},
    series,
  };
}

// A case on one access has the access's colour; the others ink and dashes.
const withCdf = data.cases.filter(c => c.cdf.length);
function caseStyle(c) {
  if (c.access) return {colour: accessColour(c.access), dash: 'solid'};
  const others = withCdf.filter(o => !o.access);
  const i = others.indexOf(c);
  return {colour: [css('--ink'), css('--paper'), css('--a6'), css('--soft')][i % 4], dash: ['solid', 'dashed', 'dotted'][Math.floor(i / 4) % 3]};
}
const latencyEntries = () => withCdf.map(c => {
  const s = caseStyle(c);
  return {name: c.name, shape: s.dash === 'solid' ? 'line' : 'dashed', colour: s.colour};
});

function latencyOption(self) {
  const {option, axis} = base();
  self.box.style.height = (narrow() ? 260 : 340) + 'px';
  const all = withCdf.flatMap(c => c.cdf.map(p => p[0])).filter(v => v > 0);
  const lo = Math.min(...all), hi = Math.max(...all);
  const log = hi / lo > 8;
  const from = lo * .93, to = hi * 1.05, marks = [];
  for (let p = 10 ** Math.floor(Math.log10(from)); p < to; p *= 10) {
    marks.push(...(hi / lo > 300 ? [1] : [1, 2, 5]).map(k => k * p).filter(v => v >= from && v <= to));
  }
  return {
    ...option,
    grid: {left: 4, right: 18, top: 12, bottom: 22, containLabel: true},
    xAxis: {...axis, type: log ? 'log' : 'value', name: 'ms', nameLocation: 'middle', nameGap: 24,
      min: log ? from : undefined, max: log ? to : undefined,
      axisTick: log ? {show: false, customValues: marks} : {show: false},
      axisLabel: {...axis.axisLabel, formatter: tick, customValues: log ? marks : undefined}},
    yAxis: {...axis, type: 'value', min: 0, max: 1, interval: .25,
      axisLabel: {...axis.axisLabel, formatter: v => Math.round(v * 100) + ' %'}},
    tooltip: {...option.tooltip, trigger: 'item', formatter: p =>
      tip(p.seriesName, [[p.color, Math.round(p.value[1] * 100) + ' % within', short(p.value[0]) + ' ms']])},
    series: withCdf.map(c => {
      const s = caseStyle(c);
      return {name: c.name, type: 'line', step: 'end', symbol: 'circle', symbolSize: 7, showSymbol: false,
        triggerLineEvent: true, itemStyle: {color: s.colour}, lineStyle: {color: s.colour, width: 2.2, type: s.dash},
        emphasis: {focus: 'series', lineStyle: {width: 3}},
        data: [[c.cdf[0][0], 0], ...c.cdf].filter(p => !log || p[0] > 0)};
    }),
  };
}

const outOf = [...new Set(data.recoveries.map(r => r[1]))].sort(
  (a, b) => data.accesses.indexOf(a) - data.accesses.indexOf(b));
const outageEntries = () => [
  ...outOf.map(a => ({name: a, shape: 'dot', colour: accessColour(a)})),
  ...(data.paper_reuse.length ? [{name: NAMES.paper, shape: 'diamond', colour: css('--paper')}] : []),
];

function outageOption(self) {
  const {option, axis, ink} = base();
  self.box.style.height = '260px';
  const of = a => data.recoveries.filter(r => r[1] === a && r[2] !== null);
  const median = v => v.length ? (v.sort((x, y) => x - y)[(v.length - 1) >> 1] + v[v.length >> 1]) / 2 : null;
  return {
    ...option,
    grid: {left: 4, right: 12, top: 10, bottom: 4, containLabel: true},
    // Numbers, so that dots can lie beside each other.
    xAxis: {...axis, type: 'value', min: -.5, max: outOf.length - .5, interval: .5, splitLine: {show: false},
      axisLabel: {...axis.axisLabel, color: ink, fontSize: 13, overflow: 'truncate',
        width: self.box.clientWidth * .75 / Math.max(1, outOf.length), formatter: v => Number.isInteger(v) ? outOf[v] ?? '' : ''}},
    yAxis: {...axis, type: 'value', min: 0, axisLine: {show: false}},
    tooltip: {...option.tooltip, trigger: 'item', formatter: p => p.data.note
      ? tip(p.seriesName, [[p.color, 'used again after', short(p.data.value[1]) + ' ms'],
        [null, 'gap seen', short(p.data.gap) + ' ms'], [null, 'case', p.data.note]])
      : tip(p.seriesName, [[null, p.data.what, short(p.data.value[1]) + ' ms']])},
    series: [...outOf.flatMap((a, i) => [{
      name: a, type: 'scatter', symbolSize: 9, itemStyle: {color: accessColour(a), opacity: .65},
      data: of(a).map((r, k) => ({value: [i + ((k * 0.618034) % 1 - .5) * .5, r[2]], gap: r[3], note: data.cases[r[0]].name})),
    }, {
      name: a, type: 'scatter', symbol: 'rect', symbolSize: [54, 3], z: 4, itemStyle: {color: ink},
      data: of(a).length ? [{value: [i, median(of(a).map(r => r[2]))], what: 'median'}] : [],
    }]), {
      name: NAMES.paper, type: 'scatter', symbol: 'diamond', symbolSize: 13, z: 6,
      itemStyle: {color: css('--paper'), borderColor: css('--surface'), borderWidth: 1.5},
      data: data.paper_reuse.map(([a, v]) => ({value: [outOf.indexOf(a), v], what: a})),
    }],
  };
}
