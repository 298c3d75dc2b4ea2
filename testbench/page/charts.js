// Charts of a finished run, drawn by ECharts.

/** Colours that people tell apart who do not see all of them, after Okabe and Ito, dark enough for white text. */
const palette = ["#0072b2", "#b07800", "#009e73", "#b0578d", "#2e86c1", "#d55e00", "#8f7f00",
                 "#7a5195", "#2f6f6f", "#b85c38", "#4b6cb7", "#7d9d33"];
const waitColour = "#c9ced6";
const idleColour = "#eceff3";
const inkColour = "#1d2330";
const softColour = "#5b6473";

/** The same colour for the same name everywhere on the page. */
const colourOf = (() => {
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, palette[known.size % palette.length]);
    return known.get(name);
  };
})();

const charts = [];

/** A chart of that height, in px, drawn when it is in the page. */
function addChart(parent, height, label, renderer) {
  const place = element("div", "chart");
  place.style.height = height + "px";
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  parent.append(place);
  const chart = echarts.init(place, null, {renderer, devicePixelRatio: Math.max(2, devicePixelRatio)});
  charts.push({chart, height});
  return chart;
}

function fitCharts(width) {
  for (const {chart, height, redraw} of charts) {
    chart.resize(width ? {width, height} : {width: "auto", height});
    if (redraw) redraw();
    chart.getZr().flush();  // at once: paper does not wait for the next frame
  }
}

const textStyle = {fontFamily: "system-ui, 'DejaVu Sans', sans-serif", color: inkColour};
const base = () => ({animation: false, textStyle});
const axisName = (name) => ({name, nameLocation: "middle", nameTextStyle: {color: softColour}});

/** `roofline` and `operators` are those of the statistics document; times in core cycles. */
function drawRoofline(parent, statistics) {
  const roofline = statistics.roofline;
  const slopes = {DRAM: roofline.dram_bytes_per_cycle, bus: roofline.bus_bytes_per_cycle,
                  "reads in flight": roofline.read_bytes_per_cycle,
                  "writes in flight": roofline.write_bytes_per_cycle};
  const [limit, bandwidth] = Object.entries(slopes).reduce((a, b) => b[1] < a[1] ? b : a);
  const points = statistics.operators.filter((op) => op.macs > 0 && op.simulated_cycles > 0 &&
                                                     op.read_bytes + op.written_bytes > 0)
      .map((op) => ({
        name: format.operator(op.name), op,
        value: [op.macs / (op.read_bytes + op.written_bytes), op.macs / op.simulated_cycles],
        itemStyle: {color: colourOf(op.name)},
      }));
  const bytes = statistics.dram_read_bytes + statistics.dram_write_bytes;
  const whole = {
    name: "all", symbol: "diamond", symbolSize: 16, itemStyle: {color: inkColour},
    value: [statistics.macs / bytes, statistics.macs / statistics.cycles],
  };
  if (!(bytes > 0 && statistics.macs > 0)) return;
  const all = [...points, whole];
  const xs = all.map((point) => point.value[0]);
  const ys = all.map((point) => point.value[1]);
  const low = 10 ** Math.floor(Math.log10(Math.min(...xs, roofline.ridge) * 0.7));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...xs, roofline.ridge) * 1.5));
  const bottom = 10 ** Math.floor(Math.log10(Math.min(...ys) * 0.7));
  const top = 10 ** Math.ceil(Math.log10(Math.max(...ys, roofline.macs_per_cycle) * 1.2));
  const chart = addChart(parent, 420, "Roofline", "svg");
  const roof = [[Math.max(low, bottom / bandwidth), 0], [roofline.ridge, 0], [high, 0]]
      .map(([x]) => [x, Math.min(x * bandwidth, roofline.macs_per_cycle)]);
  chart.setOption({
    ...base(),
    grid: {left: 70, right: 30, top: 30, bottom: 50},
    xAxis: {type: "log", min: low, max: high, ...axisName("MAC per byte from and to memory"), nameGap: 30},
    yAxis: {type: "log", min: bottom, max: top, ...axisName("MAC per cycle"), nameGap: 48},
    tooltip: {
      trigger: "item",
      formatter: ({data, seriesIndex}) => seriesIndex === 0 ? "" : format.tooltip(data.name, [
        ["MAC per byte", format.grouped(data.value[0])],
        ["MAC per cycle", format.grouped(data.value[1])],
        ["of the roof", format.percent(
            data.value[1] / Math.min(data.value[0] * bandwidth, roofline.macs_per_cycle))],
        ...(data.op ? [["cycles", format.grouped(data.op.simulated_cycles)]] : []),
      ]),
    },
    series: [
      {type: "line", data: roof, showSymbol: false, silent: true, lineStyle: {color: inkColour, width: 2},
       markPoint: {symbol: "circle", symbolSize: 1, silent: true, data: [
         {coord: roof[2], label: {formatter: `array: ${format.grouped(roofline.macs_per_cycle)} MAC/cycle`,
                                  position: "left", offset: [0, -10], color: softColour}},
         {coord: roof[0], label: {formatter: `${limit}: ${format.grouped(bandwidth)} bytes/cycle`,
                                  position: "right", offset: [22, 2], color: softColour}},
       ]}},
      {type: "scatter", data: all, symbolSize: 11,
       label: {show: true, position: "bottom", formatter: ({data}) => data.name, color: inkColour, fontSize: 11},
       labelLayout: {hideOverlap: true, moveOverlap: "shiftY"}},
    ],
  });
}

/**
 * A tree {name, value, note, children} as nested bars, the whole on top; a click makes a part the
 * whole, a click on a part above goes back.
 */
function drawFlame(parent, root, unit) {
  const whole = root.value;
  const depthOf = (node) => 1 + Math.max(0, ...(node.children || []).map(depthOf));
  const depth = depthOf(root);
  const link = (node, above) => {
    node.above = above;
    (node.children || []).forEach((child) => link(child, node));
  };
  link(root, null);
  const chart = addChart(parent, 40 + 34 * depth, "Flame graph", "svg");
  let nodes = [];
  const lay = (focus) => {
    nodes = [];
    const path = [];
    for (let node = focus; node; node = node.above) path.unshift(node);
    path.forEach((node, level) => nodes.push({node, level, from: 0, to: 1}));
    const below = (node, level, from, to) => {
      const width = to - from;
      for (const child of node.children || []) {
        const end = from + width * child.value / node.value;
        if (end - from > 0.0004) nodes.push({node: child, level, from, to: end});
        below(child, level + 1, from, end);
        from = end;
      }
    };
    below(focus, path.length, 0, 1);
    chart.setOption({series: [{data: nodes.map((n) => [n.level, n.from, n.to])}]});
  };
  chart.setOption({
    ...base(),
    grid: {left: 4, right: 4, top: 4, bottom: 4},
    xAxis: {show: false, min: 0, max: 1},
    yAxis: {show: false, min: 0, max: depth, inverse: true},
    tooltip: {formatter: ({dataIndex}) => {
      const {node} = nodes[dataIndex];
      const lines = [[unit, format.grouped(node.value)], ["of all", format.percent(node.value / whole)]];
      if (node.above) lines.push([`of ${node.above.name}`, format.percent(node.value / node.above.value)]);
      return format.tooltip(node.name, lines) + (node.note ? format.escaped(node.note) : "");
    }},
    series: [{
      type: "custom", data: [], encode: {x: [1, 2], y: 0},
      renderItem: (params, api) => {
        const {node} = nodes[params.dataIndex];
        const [x, y] = api.coord([api.value(1), api.value(0)]);
        const right = api.coord([api.value(2), 0])[0];
        const height = api.size([0, 1])[1];
        const width = Math.max(0.5, right - x - 1);
        return {
          type: "rect", shape: {x, y, width, height: height - 2, r: 2},
          style: {fill: node.colour || "#dfe5ee"},
          textContent: {style: {
            text: width < 34 ? "" : `${node.name}  ${format.percent(node.value / whole)}`, width: width - 8,
            overflow: "truncate", fill: node.dark ? "#fff" : inkColour, fontSize: 12}},
          textConfig: {position: "insideLeft"},
          emphasis: {style: {stroke: inkColour, lineWidth: 1}},
        };
      },
    }],
  });
  chart.on("click", ({dataIndex}) => lay(nodes[dataIndex].node));
  lay(root);
}

/** Where the time of every block went, in percent of its own. */
function drawBlocks(parent, blocks) {
  const names = Object.keys(blocks).filter((name) => blocks[name].total > 0);
  const causes = [...new Set(names.flatMap((name) => Object.keys(blocks[name].stalled)))]
      .filter((cause) => names.some((name) => blocks[name].stalled[cause] > 0.0005 * blocks[name].total));
  const parts = [["busy", "#009e73", (block) => block.busy],
                 ...causes.map((cause) => [cause, null, (block) => block.stalled[cause] || 0]),
                 ["idle", idleColour, (block) => block.idle]];
  const stallColours = ["#0072b2", "#b07800", "#b0578d", "#2e86c1", "#d55e00", "#8f7f00", "#7a5195", "#b85c38",
                        "#4b6cb7", "#7d9d33", "#2f6f6f", "#9c2f2f", "#c9a227", "#6b4c2a", "#e08ab5", "#1f3d7a",
                        "#a8b820", "#505a6b"];
  let used = 0;
  const chart = addChart(parent, 96 + 24 * names.length, "Time of the blocks", "svg");
  chart.setOption({
    ...base(),
    grid: {left: 150, right: 24, top: 56, bottom: 28},
    legend: {type: "plain", top: 0, left: 0, itemWidth: 12, itemHeight: 10, textStyle: {fontSize: 11}},
    xAxis: {type: "value", max: 100, axisLabel: {formatter: "{value}%"}},
    yAxis: {type: "category", data: names, inverse: true, axisTick: {show: false}},
    tooltip: {formatter: ({seriesName, name, value}) => format.tooltip(name, [
      [seriesName, value.toFixed(1) + "%"],
      [blocks[name].unit, format.grouped(Math.round(value / 100 * blocks[name].total))]])},
    series: parts.map(([name, colour, time]) => ({
      name, type: "bar", stack: "all", barWidth: 16,
      itemStyle: {color: colour || stallColours[used++ % stallColours.length]},
      data: names.map((block) => 100 * time(blocks[block]) / blocks[block].total),
    })),
  });
}

/** Bars with their values, the largest on top. `bars`: {name, value}. */
function drawBars(parent, bars, show, label, colour) {
  const sorted = bars.filter((bar) => bar.value !== 0).sort((a, b) => b.value - a.value);
  const chart = addChart(parent, 24 + 24 * sorted.length, label, "svg");
  chart.setOption({
    ...base(),
    grid: {left: 110, right: 90, top: 4, bottom: 4},
    xAxis: {show: false},
    yAxis: {type: "category", inverse: true, data: sorted.map((bar) => bar.name),
            axisTick: {show: false}, axisLine: {show: false}},
    series: [{type: "bar", barWidth: 14, data: sorted.map((bar) => bar.value), itemStyle: {color: colour},
              label: {show: true, position: "right", formatter: ({value}) => show(value)}}],
  });
}
