// The timeline: slices of commands, waits and operators, arrows of hazards, and what the machine did
// per moment. All events stay in memory; what is drawn is thinned to what the pixels can show.

/**
 * Reads the gzip file of trace events piece by piece: each event is a line, all but the last with a
 * comma at its end.
 */
async function readEvents(text, take) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);  // not from(): it takes ten times as long
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder();
  const head = "\"traceEvents\":[\n", tail = "\n]}\n";
  let rest = "";
  let begun = false;
  for (;;) {
    const {value, done} = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, {stream: true});
    if (!begun) {
      const at = rest.indexOf(head);
      if (at < 0 && !done) continue;
      begun = true;
      rest = at < 0 ? tail : rest.slice(at + head.length);
    }
    const end = done ? rest.lastIndexOf(tail) : rest.lastIndexOf(",\n");
    if (end > 0) take(JSON.parse("[" + rest.slice(0, end) + "]"));
    if (done) break;
    if (end >= 0) rest = rest.slice(end + 2);
  }
}

/** Slices by row, and arrows. Times in us since the start of the simulation. */
class TimelineData {
  constructor() {
    this.rows = new Map();
    this.processes = new Map();
    this.arrows = [];
    this.open = new Map();
    this.count = 0;
  }

  row(event) {
    const key = event.pid * 65536 + event.tid;
    if (!this.rows.has(key)) {
      this.rows.set(key, {key, process: event.pid, name: "", slices: [], order: key});
    }
    return this.rows.get(key);
  }

  take(events) {
    for (const event of events) {
      if (event.ph === "X") {
        this.row(event).slices.push(
            {begin: event.ts, end: event.ts + event.dur, name: event.name, args: event.args,
             waits: event.name.startsWith("wait for ")});
        ++this.count;
      } else if (event.ph === "s") {
        this.open.set(event.id, event);
      } else if (event.ph === "f") {
        const from = this.open.get(event.id);
        this.open.delete(event.id);
        this.arrows.push({from: from.ts, to: event.ts, source: this.row(from), target: this.row(event)});
      } else if (event.name === "thread_name") {
        this.row(event).name = event.args.name;
      } else if (event.name === "process_name") {
        this.processes.set(event.pid, event.args.name);
      }
    }
  }

  /** After all events. */
  finish() {
    this.shown = [...this.rows.values()].filter((row) => row.slices.length).sort((a, b) => a.key - b.key);
    const several = new Set(this.shown.map((row) => row.process)).size > 1;
    this.begin = Infinity;
    this.end = -Infinity;
    this.shown.forEach((row, index) => {
      row.index = index;
      row.label = several ? `${this.processes.get(row.process)} ${row.name}` : row.name;
      row.title = index && this.shown[index - 1].label === row.label ? "" : row.label;
      row.slices.sort((a, b) => a.begin - b.begin);
      row.slices.forEach((slice, i) => {
        slice.row = row;
        slice.index = i;
        this.begin = Math.min(this.begin, slice.begin);
        this.end = Math.max(this.end, slice.end);
      });
    });
    this.arrows.sort((a, b) => a.to - b.to);
  }
}

/** The first index of a sorted list for which `after` holds. */
function lowerBound(list, after) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (after(list[middle])) high = middle; else low = middle + 1;
  }
  return low;
}

/**
 * What of a row is drawn between `from` and `to` at a resolution of `step`: slices of at least a
 * step as they are, shorter ones in runs. A run has the colour of what takes most of its time.
 */
function thinned(row, from, to, step) {
  const drawn = [];
  let run = null;
  const close = () => {
    if (!run) return;
    let best = run.first;
    let most = -1;
    for (const [name, part] of run.parts) {
      if (part.time > most) [most, best] = [part.time, part.slice];
    }
    drawn.push({begin: run.begin, end: run.end, slice: best, count: run.count});
    run = null;
  };
  for (let i = lowerBound(row.slices, (s) => s.end > from); i < row.slices.length; ++i) {
    const slice = row.slices[i];
    if (slice.begin >= to) break;
    if (slice.end - slice.begin >= step) {
      close();
      drawn.push({begin: slice.begin, end: slice.end, slice, count: 1});
      continue;
    }
    if (run && (slice.begin - run.end > step || slice.end - run.begin > step)) close();
    if (!run) run = {begin: slice.begin, end: slice.end, first: slice, count: 0, parts: new Map()};
    run.end = Math.max(run.end, slice.end);
    ++run.count;
    const part = run.parts.get(slice.name) || {time: 0, slice};
    part.time += slice.end - slice.begin;
    run.parts.set(slice.name, part);
  }
  close();
  return drawn;
}

/** Sums over equal parts of a span, each contribution spread evenly over its time. */
class Track {
  constructor(from, to, parts) {
    Object.assign(this, {from, step: (to - from) / parts, parts});
    this.sums = new Float64Array(parts);
    this.slopes = new Float64Array(parts + 1);
  }
  /** `amount` from `begin` to `end`. */
  add(begin, end, amount) {
    if (end <= begin) end = begin + 1e-6;
    const rate = amount / (end - begin);
    const a = Math.max(0, (begin - this.from) / this.step);
    const b = Math.min(this.parts, (end - this.from) / this.step);
    if (b <= a) return;
    const [first, last] = [Math.floor(a), Math.min(this.parts - 1, Math.floor(b))];
    const unit = rate * this.step;
    if (first === last) {
      this.sums[first] += unit * (b - a);
      return;
    }
    this.sums[first] += unit * (first + 1 - a);
    this.sums[last] += unit * (b - last);
    this.slopes[first + 1] += unit;
    this.slopes[last] -= unit;
  }
  /** [time, value of `scale(sum per us)`] of each part. */
  points(scale) {
    let slope = 0;
    const points = [];
    for (let i = 0; i < this.parts; ++i) {
      slope += this.slopes[i];
      points.push([this.from + (i + 0.5) * this.step, scale((this.sums[i] + slope) / this.step)]);
    }
    return points;
  }
}

const trackParts = 500;
const mostArrows = 400;

/** Draws `data`; `machine` gives the clock and the array, if it has one. */
class TimelineView {
  constructor(parent, data, machine) {
    this.data = data;
    this.mhz = machine.core.clock_mhz;
    const array = machine.array;
    this.peak = array ? array.rows * array.cols * this.mhz : 0;  // MAC per us
    this.units = data.shown.filter((row) => row.slices.some((s) => s.args.dispatched_cycle !== undefined));
    this.query = "";
    this.arrows = true;
    this.addControls(parent);
    const rows = 26 * data.shown.length;
    const tracks = this.units.length ? this.trackList() : [];
    this.tracks = tracks;
    const height = 30 + rows + tracks.length * 92 + 64;
    this.chart = addChart(parent, height, "Timeline", "canvas");
    charts[charts.length - 1].redraw = () => this.draw();
    this.detail = element("div", "detail", "Click a slice for all that is known of it.");
    parent.append(this.detail);
    this.setUp(rows, tracks);
    this.draw();
  }

  addControls(parent) {
    const search = element("input");
    search.type = "search";
    search.placeholder = "find operators, waits, commands";
    search.setAttribute("aria-label", "find in the timeline");
    const found = element("span", "note");
    const next = element("button", "", "next");
    const arrows = element("input");
    arrows.type = "checkbox";
    arrows.checked = true;
    const whole = element("button", "", "whole run");
    this.arrowNote = element("span", "note");
    parent.append(element("div", "controls", search, next, found, whole,
                          element("label", "", arrows, " hazards"), this.arrowNote));
    search.addEventListener("input", () => {
      this.query = search.value.trim().toLowerCase();
      this.matches = [];
      let time = 0;
      if (this.query) {
        for (const row of this.data.shown) {
          for (const slice of row.slices) {
            if (!this.matching(slice)) continue;
            this.matches.push(slice);
            time += slice.end - slice.begin;
          }
        }
        this.matches.sort((a, b) => a.begin - b.begin);
      }
      this.at = -1;
      found.textContent = this.query ?
          `${format.grouped(this.matches.length)} slices, ${format.prefixed(time * 1e-6, "s")}` : "";
      this.draw();
    });
    const go = () => {
      if (!this.matches || !this.matches.length) return;
      this.at = (this.at + 1) % this.matches.length;
      const slice = this.matches[this.at];
      const margin = 4 * Math.max(slice.end - slice.begin, 1 / this.mhz);
      this.zoom(slice.begin - margin, slice.end + margin);
      this.show(slice);
    };
    next.addEventListener("click", go);
    search.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    whole.addEventListener("click", () => this.zoom(this.data.begin, this.data.end));
    arrows.addEventListener("change", () => {
      this.arrows = arrows.checked;
      this.draw();
    });
  }

  matching(slice) {
    return slice.name.toLowerCase().includes(this.query) ||
        (slice.args.what || "").toLowerCase().includes(this.query) ||
        String(slice.args.command) === this.query;
  }

  zoom(from, to) {
    this.chart.dispatchAction({type: "dataZoom", dataZoomIndex: 0, startValue: from, endValue: to});
  }

  trackList() {
    const tracks = [];
    const slices = this.units.flatMap((row) => row.slices);
    if (this.peak && slices.some((s) => s.args.macs)) {
      tracks.push({name: "array %", lines: ["array"], max: 100});
    }
    if (slices.some((s) => s.args.bytes || s.args.operand_bytes)) {
      tracks.push({name: "GB/s", lines: ["memory"]});
    }
    tracks.push({name: "queue", lines: this.units.map((row) => row.name)});
    return tracks;
  }

  /** The values of all tracks between two times, by name of the line. */
  trackPoints(from, to) {
    const make = () => new Track(from, to, trackParts);
    const [macs, bytes] = [make(), make()];
    const queues = this.units.map(make);
    this.units.forEach((row, unit) => {
      let arrived = 0, operands = 0;  // what was asked for before
      for (const slice of row.slices) {
        const args = slice.args;
        if (args.dispatched_cycle === undefined) continue;
        const dispatched = args.dispatched_cycle / this.mhz;
        const there = (args.arrived_cycle ?? args.completed_cycle) / this.mhz;
        const completed = Math.max(slice.end, there);
        // A port moves the bytes of one command after those of the one before.
        const first = arrived < completed ? Math.max(slice.begin, arrived) : slice.begin;
        arrived = Math.max(arrived, completed);
        if (completed < from || dispatched > to) continue;
        if (args.macs) macs.add(slice.begin, slice.end, args.macs);
        if (args.bytes) bytes.add(first, completed, args.bytes);
        if (args.operand_bytes) {
          // Those come ahead, from the dispatch on.
          bytes.add(Math.max(dispatched, operands), completed, args.operand_bytes);
          operands = completed;
        }
        queues[unit].add(dispatched, slice.begin, slice.begin - dispatched);
      }
    });
    return this.tracks.map((track) => {
      if (track.name === "array %") return [macs.points((rate) => 100 * rate / this.peak)];
      if (track.name === "GB/s") return [bytes.points((rate) => rate * 1e-3)];
      return queues.map((queue) => queue.points((depth) => depth));
    });
  }

  setUp(rows, tracks) {
    const data = this.data;
    const grids = [{left: 130, right: 20, top: 8, height: rows}];
    const xAxes = [{gridIndex: 0, min: data.begin, max: data.end, position: "bottom", axisLabel: {show: !tracks.length}}];
    const yAxes = [{gridIndex: 0, type: "category", inverse: true, data: data.shown.map((row) => row.title),
                    axisTick: {show: false}, splitArea: {show: true, areaStyle: {color: ["#fff", "#f8f9fb"]}}}];
    tracks.forEach((track, i) => {
      const last = i + 1 === tracks.length;
      grids.push({left: 130, right: 20, top: 30 + rows + 92 * i, height: 62});
      xAxes.push({gridIndex: i + 1, min: data.begin, max: data.end, axisLabel: {show: last, showMaxLabel: false, formatter: (v) => this.time(v)}});
      yAxes.push({gridIndex: i + 1, type: "value", min: 0, max: track.max, splitNumber: 2, name: track.name,
                  nameLocation: "middle", nameGap: 46, nameTextStyle: {color: softColour},
                  splitLine: {lineStyle: {color: idleColour}}});
    });
    if (!tracks.length) xAxes[0].axisLabel.formatter = (v) => this.time(v);
    const all = xAxes.map((_, i) => i);
    const unitColours = {load: "#0072b2", array: "#009e73", "post-op and store": "#d55e00"};
    this.chart.setOption({
      ...base(), grid: grids, xAxis: xAxes.map((axis) => ({type: "value", splitLine: {show: false}, ...axis})), yAxis: yAxes,
      legend: tracks.length ? {bottom: 34, data: this.units.map((row) => ({name: row.name})), itemHeight: 8,
                               textStyle: {fontSize: 11}, selectedMode: false} : undefined,
      axisPointer: {link: [{xAxisIndex: "all"}]},
      tooltip: {trigger: "item", confine: true, formatter: (params) => this.tip(params)},
      dataZoom: [{type: "inside", xAxisIndex: all, filterMode: "none", minValueSpan: 4 / this.mhz},
                 {type: "slider", xAxisIndex: all, filterMode: "none", bottom: 6, height: 20, showDataShadow: false,
                  labelFormatter: (v) => this.time(v)}],
      series: [
        {id: "slices", type: "custom", progressive: 0, data: [], encode: {x: [1, 2], y: 0}, clip: true,
         renderItem: (params, api) => this.box(params, api)},
        {id: "arrows", type: "custom", progressive: 0, data: [], silent: true, encode: {x: [0, 1]}, clip: true, z: 5,
         renderItem: (params, api) => this.arrow(params, api)},
        ...tracks.flatMap((track, i) => track.lines.map((line) => ({
          id: `${track.name} ${line}`, name: line, type: "line", xAxisIndex: i + 1, yAxisIndex: i + 1, data: [],
          showSymbol: false, step: "middle", lineStyle: {width: 1.2, color: unitColours[line]},
          itemStyle: {color: unitColours[line] || "#0072b2"},
          areaStyle: track.lines.length === 1 ? {opacity: 0.25, color: unitColours[line] || "#0072b2"} : undefined,
          tooltip: {trigger: "axis"},
        }))),
      ],
    });
    let waiting = false;
    this.chart.on("datazoom", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.draw();
      });
    });
    this.chart.on("click", (params) => {
      if (params.seriesId === "slices") this.show(this.boxes[params.dataIndex].slice);
    });
  }

  /** A time in the unit that suits what is visible. */
  time(us) {
    const span = this.to - this.from;
    if (span >= 20000) return (us / 1000).toFixed(span >= 100000 ? 0 : 1) + " ms";
    return format.grouped(Number(us.toFixed(span >= 200 ? 0 : span >= 2 ? 1 : 3))) + " \u00b5s";
  }

  draw() {
    const zoom = this.chart.getOption().dataZoom[0];
    const span = this.data.end - this.data.begin;
    this.from = this.data.begin + span * zoom.start / 100;
    this.to = this.data.begin + span * zoom.end / 100;
    const step = (this.to - this.from) / Math.max(200, this.chart.getWidth() - 150);
    this.boxes = this.data.shown.flatMap((row) => thinned(row, this.from, this.to, step));
    let arrows = [];
    const first = lowerBound(this.data.arrows, (arrow) => arrow.to >= this.from);
    const last = lowerBound(this.data.arrows, (arrow) => arrow.to > this.to);
    if (this.arrows && last - first <= mostArrows) arrows = this.data.arrows.slice(first, last);
    this.visibleArrows = arrows;
    this.arrowNote.textContent = !this.data.arrows.length ? "" : this.arrows && last - first > mostArrows ?
        `${format.grouped(last - first)} hazards in view: arrows below ${mostArrows}, zoom in` : "";
    const points = this.tracks.length ? this.trackPoints(this.from, this.to) : [];
    this.chart.setOption({series: [
      {id: "slices", data: this.boxes.map((box) => [box.slice.row.index, box.begin, box.end])},
      {id: "arrows", data: arrows.map((arrow) => [arrow.from, arrow.to])},
      ...this.tracks.flatMap((track, i) => track.lines.map((line, j) =>
          ({id: `${track.name} ${line}`, data: points[i][j]}))),
    ]});
  }

  box(params, api) {
    const box = this.boxes[params.dataIndex];
    const {slice} = box;
    const area = params.coordSys;
    const [x0, y] = api.coord([box.begin, slice.row.index]);
    const x1 = api.coord([box.end, slice.row.index])[0];
    const height = 18;
    const rect = echarts.graphic.clipRectByRect(
        {x: x0, y: y - height / 2, width: Math.max(0.7, x1 - x0 - (x1 - x0 > 4 ? 0.6 : 0)), height}, area);
    if (!rect) return null;
    const faded = this.query && !this.matching(slice);
    const text = rect.width < 40 || box.count > 1 ? "" : format.operator(slice.name);
    return {
      type: "rect", shape: rect,
      style: {fill: slice.waits ? waitColour : colourOf(format.generalName(slice.name)), opacity: faded ? 0.15 : 1},
      // Always one: the library reuses boxes, and one without a text would keep that of its last use.
      textContent: {style: {
        text, width: rect.width - 6, overflow: "truncate", fontSize: 11,
        fill: slice.waits ? softColour : "#fff"}},
      textConfig: {position: "insideLeft", inside: true},
      emphasis: {style: {stroke: inkColour, lineWidth: 1}},
    };
  }

  arrow(params, api) {
    const arrow = this.visibleArrows[params.dataIndex];
    const a = api.coord([arrow.from, arrow.source.index]);
    const b = api.coord([arrow.to, arrow.target.index]);
    const down = Math.sign(b[1] - a[1]) || 1;
    const [y0, y1] = [a[1] + 9 * down, b[1] - 9 * down];
    const style = {stroke: inkColour, lineWidth: 1, fill: "none", opacity: 0.75};
    return {type: "group", children: [
      {type: "bezierCurve", style,
       shape: {x1: a[0], y1: y0, x2: b[0], y2: y1, cpx1: a[0], cpy1: (y0 + y1) / 2, cpx2: b[0], cpy2: (y0 + y1) / 2}},
      {type: "polygon", style: {fill: inkColour, opacity: 0.75},
       shape: {points: [[b[0], y1], [b[0] - 3, y1 - 6 * down], [b[0] + 3, y1 - 6 * down]]}},
    ]};
  }

  facts(slice) {
    const lines = [["from", this.exact(slice.begin)], ["for", this.exact(slice.end - slice.begin)]];
    for (const [name, value] of Object.entries(slice.args)) {
      lines.push([name.replace(/_/g, " "), typeof value === "number" ? format.grouped(value) : value]);
    }
    return lines;
  }
  exact(us) { return format.grouped(Number(us.toFixed(3))) + " \u00b5s"; }

  tip(params) {
    if (params.seriesId !== "slices") {
      return format.tooltip(params.seriesName, [["at", this.exact(params.value[0])],
                                               ["value", format.grouped(params.value[1])]]);
    }
    const box = this.boxes[params.dataIndex];
    if (box.count === 1) return format.tooltip(format.operator(box.slice.name), this.facts(box.slice));
    return format.tooltip(`${format.grouped(box.count)} slices`, [
      ["most time", format.operator(box.slice.name)], ["from", this.exact(box.begin)],
      ["for", this.exact(box.end - box.begin)], ["", "zoom in to tell them apart"]]);
  }

  show(slice) {
    const facts = this.facts(slice).map(([label, value]) => `${label} ${value}`).join("  \u00b7  ");
    this.detail.replaceChildren(element("b", "", `${slice.row.label}: ${slice.name}`), element("div", "", facts));
  }
}
