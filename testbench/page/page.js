// The parts of the page. Each takes what it needs from the documents and leaves out what they lack.

class Page {
  constructor(title) {
    this.main = document.getElementById("report");
    this.nav = element("nav");
    document.title = title;
    this.main.append(element("h1", "", title), this.nav);
  }
  /** A section with a line that says how to read it. */
  section(title, note) {
    const heading = element("h2", "", title);
    heading.id = title.toLowerCase().replace(/[^a-z]+/g, "-");
    const link = element("a", "", title);
    link.href = "#" + heading.id;
    this.nav.append(link);
    const place = element("section", "", heading);
    if (note) place.append(element("p", "note", note));
    this.main.append(place);
    return place;
  }
  figures(list) {
    const place = element("div", "figures");
    for (const [label, value, more] of list) {
      if (value === null || value === undefined) continue;
      place.append(element("div", "figure", element("span", "", label), element("b", "", value),
                           element("span", "", more || "")));
    }
    this.main.append(place);
  }
}

/** "system.core.x": every scalar of a document by its place in it. */
function flattened(document_, path = "", into = []) {
  for (const [name, value] of Object.entries(document_)) {
    const place = path ? `${path}.${name}` : name;
    if (value !== null && typeof value === "object") flattened(value, place, into);
    else into.push([place, value === null ? null : typeof value === "number" ? format.grouped(value) : String(value)]);
  }
  return into;
}

function runFigures(page, statistics) {
  const machine = statistics.machine_keys;
  const bound = statistics.bound;
  page.main.append(element("p", "note", machine.summary || ""));
  if (statistics.tokens_per_second !== undefined) {
    page.figures([
      ["tokens per second", format.grouped(statistics.tokens_per_second)],
      ["tokens per joule", format.grouped(statistics.tokens_per_joule)],
      ["time", format.prefixed(statistics.milliseconds * 1e-3, "s"), "of the whole text"],
      ["a pass", format.prefixed(statistics.milliseconds_per_pass * 1e-3, "s"), `${statistics.passes} passes`],
      ["first token", format.prefixed(statistics.first_token_milliseconds * 1e-3, "s")],
      ["weights", format.prefixed(statistics.weight_bytes, "B"), "of core 0"],
      ["read", format.prefixed(statistics.hbm_read_bytes, "B"), "from HBM by core 0"],
    ]);
  }
  if (statistics.cycles === undefined) return;
  const seconds = statistics.seconds || statistics.cycles / (machine.core.clock_mhz * 1e6);
  const written = statistics.dram_write_bytes ?? statistics.dram_written_bytes;
  page.figures([
    ["cycles", format.grouped(statistics.cycles), format.prefixed(seconds, "s")],
    ["lower bound", bound ? format.grouped(bound) : null, "cycles, whatever the mapping"],
    ["over the bound", bound ? statistics.over_bound.toFixed(2) + "\u00d7" : null, "cycles / bound"],
    ["array used", statistics.utilisation === undefined ? null : format.percent(statistics.utilisation), "of its MACs"],
    ["MACs", statistics.macs === undefined ? null : format.prefixed(statistics.macs, ""), "per inference"],
    ["read", statistics.dram_read_bytes === undefined ? null : format.prefixed(statistics.dram_read_bytes, "B"), "by the core"],
    ["written", written === undefined ? null : format.prefixed(written, "B"), "by the core"],
    ["energy", statistics.energy_joules === undefined ? null : format.prefixed(statistics.energy_joules, "J"),
     statistics.energy_joules === undefined ? "" : format.prefixed(statistics.energy_joules / seconds, "W")],
    ["area", statistics.area_mm2 ? statistics.area_mm2.toFixed(2) + " mm\u00b2" : null, "at 45 nm, estimated"],
    ["accuracy", statistics.accuracy === null || statistics.accuracy === undefined ? null : format.percent(statistics.accuracy)],
    ["inferences", statistics.images ? format.grouped(statistics.images) : null,
     statistics.functional === false ? "timing only" : ""],
    ["checked", statistics.checked_bytes ? format.prefixed(statistics.checked_bytes, "B") : null,
     statistics.checked_bytes ? `${format.grouped(statistics.mismatched_bytes)} differ` : ""],
  ]);
}

/** The tree of the flame graph from a critical path: operator, block, cause. */
function pathTree(explanation) {
  const node = (name, value, colour, note, children) => ({name, value, colour, note, children});
  const causeColours = {busy: "#b7dfc9", in_flight: "#d8d3ea"};
  const operators = explanation.operators.filter((op) => op.cycles > 0).map((op) => {
    const units = new Map();
    for (const cause of op.causes) {
      if (!units.has(cause.unit)) units.set(cause.unit, []);
      units.get(cause.unit).push(cause);
    }
    const blocks = [...units].map(([unit, causes]) => node(
        unit, causes.reduce((sum, cause) => sum + cause.cycles, 0), "#cfdcec", "",
        causes.map((cause) => node(cause.cause, cause.cycles, causeColours[cause.cause] || "#f3d3b8", ""))));
    blocks.sort((a, b) => b.value - a.value);
    const made = node(format.operator(op.name), op.cycles, colourOf(op.name), `${op.operators} in the network`, blocks);
    made.dark = true;
    return made;
  });
  return node(explanation.model, explanation.critical_path_cycles, "#e3e7ee", "", operators);
}

function operatorTable(place, statistics) {
  const total = statistics.cycles;
  const bytes = (op) => op.read_bytes + op.written_bytes;
  const percentOf = (part, whole) => (part > 0 ? "+" : "") + (100 * part / whole).toFixed(0) + "%";
  const mostOf = (op) => Object.entries(op.causes).filter(([, cycles]) => Math.abs(cycles) > 0.005 * op.slowest_cycles)
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 2)
      .map(([cause, cycles]) => `${cause} ${percentOf(cycles, op.slowest_cycles)}`).join(", ");
  place.append(sortedTable([
    {title: "operator", value: (op) => op.name, show: (op) => format.operator(op.name), hint: "layers and heads together"},
    {title: "\u00d7", number: true, value: (op) => op.operators, hint: "operators of that name"},
    {title: "cycles", number: true, value: (op) => op.simulated_cycles, show: (op) => format.grouped(op.simulated_cycles),
     hint: "from the completion of the operators before it to its own"},
    {title: "% of run", number: true, value: (op) => op.simulated_cycles / total, show: (op) => (100 * op.simulated_cycles / total).toFixed(1)},
    {title: "bound", number: true, value: (op) => op.slowest_cycles, show: (op) => format.grouped(Math.round(op.slowest_cycles)),
     hint: "cycles of its slowest unit by contract, as mapped"},
    {title: "bound by", value: (op) => op.bound_by},
    {title: "over bound", number: true, value: (op) => op.simulated_cycles / op.slowest_cycles,
     show: (op) => op.slowest_cycles > 0 ? (op.simulated_cycles / op.slowest_cycles).toFixed(2) : "-"},
    {title: "beyond the bound", value: mostOf, hint: "largest causes, % of the bound"},
    {title: "MACs", number: true, value: (op) => op.macs, show: (op) => format.prefixed(op.macs, "")},
    {title: "read", number: true, value: (op) => op.read_bytes, show: (op) => format.prefixed(op.read_bytes, "B")},
    {title: "written", number: true, value: (op) => op.written_bytes, show: (op) => format.prefixed(op.written_bytes, "B")},
    {title: "MAC/byte", number: true, value: (op) => op.macs / bytes(op), show: (op) => bytes(op) ? format.grouped(op.macs / bytes(op)) : "-"},
    {title: "energy", number: true, value: (op) => op.energy_joules, show: (op) => format.prefixed(op.energy_joules, "J"),
     hint: "of its commands, and static power until it ends"},
  ], statistics.operators, 2));
}

function drawExplanation(page, statistics, explanation) {
  const flame = page.section("Stalls", "The critical path: the cycles of the run, one after the other, by operator, " +
      "block and cause. Click a part to look into it, click above to go back.");
  drawFlame(flame, pathTree(explanation), "cycles");
  const path = page.section("Critical path", "Cycles that the run would have less if only they vanished.");
  path.append(sortedTable([
    {title: "block", value: (cause) => cause.unit},
    {title: "cause", value: (cause) => cause.cause},
    {title: "cycles", number: true, value: (cause) => cause.cycles, show: (cause) => format.grouped(cause.cycles)},
    {title: "%", number: true, value: (cause) => cause.cycles, show: (cause) => (100 * cause.cycles / explanation.cycles).toFixed(1)},
  ], explanation.causes.filter((cause) => cause.cycles > 0.0005 * explanation.cycles), 2));
  if (!explanation.what_if.length) return;
  const seconds = explanation.cycles / (statistics.machine_keys.core.clock_mhz * 1e6);
  const sign = (value) => value === null || Math.abs(value / seconds - 1) < 5e-4 ? "" : value < seconds ? "better" : "worse";
  const changes = page.section("What if", "One key of the machine changed: time with the program as it is, mapped again, and as simulated of the faster one.");
  changes.append(sortedTable([
    {title: "change", value: (change) => `${change.key} \u00d7 ${change.factor}`},
    {title: "on path %", number: true, value: (change) => change.on_path,
     show: (change) => change.on_path === null ? "-" : (100 * change.on_path / explanation.cycles).toFixed(1)},
    {title: "kept", number: true, value: (change) => change.kept_seconds === null ? null : -change.kept_seconds,
     show: (change) => change.kept_seconds === null ? "-" : format.change(change.kept_seconds, seconds),
     mark: (change) => sign(change.kept_seconds)},
    {title: "mapped", number: true, value: (change) => change.predicted_seconds === null ? null : -change.predicted_seconds,
     show: (change) => change.predicted_seconds === null ? "-" : format.change(change.predicted_seconds, seconds),
     mark: (change) => sign(change.predicted_seconds)},
    {title: "simulated", number: true, value: (change) => change.simulated_seconds === null ? null : -change.simulated_seconds,
     show: (change) => change.simulated_seconds === null ? "" : format.change(change.simulated_seconds, seconds),
     mark: (change) => sign(change.simulated_seconds)},
    {title: "energy", number: true, value: (change) => change.simulated_joules,
     show: (change) => change.simulated_joules === null ? "" : format.change(change.simulated_joules, explanation.energy_joules)},
    {title: "area", number: true, value: (change) => change.area_mm2,
     show: (change) => format.change(change.area_mm2, explanation.area_mm2)},
    {title: "refused", value: (change) => change.refused || ""},
  ], explanation.what_if, 2));
}

function drawMachine(page, keys) {
  const place = page.section("Machine", "Every key of the machine, by section.");
  const sections = element("div", "sections");
  const top = Object.entries(keys).filter(([, value]) => typeof value !== "object");
  const parts = [["", top], ...Object.entries(keys).filter(([, value]) => typeof value === "object")
      .map(([name, section]) => [name, Object.entries(section)])];
  for (const [name, facts] of parts) {
    const table = factTable(facts.filter(([key]) => key !== "summary"));
    sections.append(element("div", "", element("h3", "", name), table));
  }
  place.append(sections);
}

/** The page of a run; the timeline is drawn when it is read. */
async function drawRun(data) {
  const {statistics, explanation} = data;
  const packed = document.getElementById("timeline-data").textContent;
  const parts = (statistics.layers || []).map((layer) => layer.name).filter((name) => name);
  const network = statistics.model || (parts.length ? parts.join(", ") : "attention");
  const page = new Page(`${network} on ${statistics.machine}`);
  runFigures(page, statistics);
  let timeline = null;
  if (packed) {
    timeline = page.section("Timeline", "What each unit did. Turn the wheel to zoom, drag to move. Short slices " +
        "are drawn together until the zoom tells them apart. Grey: waiting for a hazard. GB/s: bytes of a command, " +
        "spread evenly over the time to its completion; queue: commands in a unit's station.");
  }
  const operators = statistics.operators || [];
  if (operators.length) {
    drawRoofline(page.section("Roofline", "One point per operator, all layers and heads together. An operator that " +
        "overlaps those before it can stand above the roof."), statistics);
    operatorTable(page.section("Operators", "Bound: the slowest unit by its cycle contract, as mapped. Energy: of the " +
        "operator's commands, with static power from the end of the operators before it to its own."), statistics);
  }
  if (explanation) drawExplanation(page, statistics, explanation);
  if (statistics.blocks) {
    drawBlocks(page.section("Blocks", "Where the time of every block went, while the core ran."), statistics.blocks);
  }
  if (statistics.energy) {
    drawBars(page.section("Energy", `${format.prefixed(statistics.energy_joules, "J")} per inference, by cause.`),
             Object.entries(statistics.energy).map(([name, value]) => ({name, value})),
             (value) => `${format.prefixed(value, "J")}, ${format.percent(value / statistics.energy_joules)}`, "Energy", "#0072b2");
  }
  if (statistics.area_mm2) {
    drawBars(page.section("Area", `${statistics.area_mm2.toFixed(2)} mm\u00b2 at 45 nm by block, estimated: cells and memories, no wires.`),
             Object.entries(statistics.area).filter(([, value]) => value > 0).map(([name, value]) => ({name, value})),
             (value) => `${value.toFixed(3)} mm\u00b2, ${format.percent(value / statistics.area_mm2)}`, "Area", "#009e73");
  }
  drawMachine(page, statistics.machine_keys);
  const rest = {...statistics};
  delete rest.machine_keys;
  const figures = page.section("All figures");
  figures.className = "screen";
  figures.append(element("details", "", element("summary", "", "the whole statistics document"),
                         factTable(flattened(rest))));
  if (!packed) return;
  const events = new TimelineData();
  await readEvents(packed, (some) => events.take(some));
  events.finish();
  if (events.count) globalThis.view = new TimelineView(timeline, events, statistics.machine_keys);
}
