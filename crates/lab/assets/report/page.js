// Puts the charts into the page; theme, controls, printing.

const place = (name, build, entries, unit) => {
  const box = $(`[data-chart="${name}"]`);
  if (box) new Chart(box, $(`[data-legend="${name}"]`), build, entries, {unit});
};
place('goodput', goodputOption, goodputEntries, 'Mbit/s');
place('latency', latencyOption, latencyEntries);
place('outages', outageOption, outageEntries, 'ms');

if ($('#runs') && allMeasures.length) {
  $('.controls').hidden = false;
  $('#measures').replaceChildren(...allMeasures.map(m => {
    const b = el('button', {type: 'button', textContent: MEASURES[m].title});
    b.dataset.measure = m;
    b.setAttribute('aria-pressed', m === view.measure);
    b.onclick = () => {
      view.measure = m;
      for (const o of $('#measures').children) o.setAttribute('aria-pressed', o === b);
      drawRuns();
    };
    return b;
  }));
  const repeats = [...new Set(data.runs.map(r => r.repeat))].sort((a, b) => a - b);
  view.repeat = repeats[0];
  if (repeats.length > 1) {
    $('#repeat-box').hidden = false;
    $('#repeat').replaceChildren(...repeats.map(r => el('option', {value: r, textContent: r})));
    $('#repeat').onchange = e => { view.repeat = +e.target.value; drawRuns(); };
  }
  $('#same').onchange = e => { view.same = e.target.checked; charts.forEach(c => c.draw()); };
  drawRuns();
}

drawPolicies();

const system = matchMedia('(prefers-color-scheme: dark)');
const dark = () => document.documentElement.dataset.theme
  ? document.documentElement.dataset.theme === 'dark' : system.matches;
const restyle = () => charts.forEach(c => c.restyle());
const setTheme = t => {
  if (t) document.documentElement.dataset.theme = t; else delete document.documentElement.dataset.theme;
  restyle();
};
$('#theme').onclick = () => setTheme(dark() ? 'light' : 'dark');
system.addEventListener('change', restyle);

// On paper: light, every chart drawn, and each as wide as the paper lets it.
let before;
addEventListener('beforeprint', () => {
  before = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  charts.forEach(c => {
    c.show();
    c.restyle();
    $('svg', c.box).setAttribute('viewBox', `0 0 ${c.chart.getWidth()} ${c.chart.getHeight()}`);
  });
});
addEventListener('afterprint', () => setTheme(before));
whenIdle(drawNext);
document.documentElement.dataset.ready = 'yes';
