// The page of two runs side by side; its document is that of systole compare --json.

/** Columns for a pair of values that `of` finds in a row. */
function pairColumns(title, of, show, smallerIsBetter) {
  const change = (row) => {
    const {a, b} = of(row);
    return a === null || b === null ? null : a === 0 ? (b === 0 ? 0 : Infinity) : b / a - 1;
  };
  const mark = (row) => {
    const value = change(row);
    return !smallerIsBetter || value === null || Math.abs(value) < 5e-4 ? "" : value < 0 ? "better" : "worse";
  };
  return [
    {title: `${title} a`, number: true, value: (row) => of(row).a, show: (row) => show(of(row).a, row)},
    {title: `${title} b`, number: true, value: (row) => of(row).b, show: (row) => show(of(row).b, row)},
    {title: "change", number: true, value: (row) => Math.abs(change(row)), mark,
     show: (row) => change(row) === 0 ? "=" : format.change(of(row).b ?? NaN, of(row).a ?? NaN)},
  ];
}

const inUnit = (value, row) => value === null ? "-" : row.unit === "s" || row.unit === "J" ?
    format.prefixed(value, row.unit) : row.unit === "mm2" ? value.toFixed(2) : format.grouped(value);

function drawPairs(parent, rows, show) {
  const chart = addChart(parent, 50 + 40 * rows.length, "Cycles of the operators", "svg");
  chart.setOption({
    ...base(),
    grid: {left: 170, right: 100, top: 30, bottom: 4},
    legend: {top: 0, left: 0, itemWidth: 12, itemHeight: 10},
    xAxis: {show: false},
    yAxis: {type: "category", inverse: true, data: rows.map((row) => row.name), axisTick: {show: false}},
    series: ["a", "b"].map((side, i) => ({
      name: side, type: "bar", barWidth: 13, itemStyle: {color: ["#9aa5b5", "#0072b2"][i]},
      data: rows.map((row) => row[side]),
      label: {show: true, position: "right", formatter: ({value}) => show(value)},
    })),
  });
}

async function drawComparison(comparison) {
  const page = new Page(`${comparison.model}: two runs`);
  const {files, machines} = comparison;
  for (const side of ["a", "b"]) {
    page.main.append(element("p", "note", `${side}: ${files[side]}, on ${machines[side]}`));
  }
  const machine = page.section("Machines", comparison.machine_keys.length ? "Keys that differ." : "All keys are the same.");
  const keyText = (value) => value === null ? "-" : String(value);
  if (comparison.machine_keys.length) {
    machine.append(sortedTable([
      {title: "key", value: (row) => row.key},
      {title: "a", number: true, value: (row) => row.a, show: (row) => keyText(row.a)},
      {title: "b", number: true, value: (row) => row.b, show: (row) => keyText(row.b)},
    ], comparison.machine_keys));
  }
  const totals = page.section("Per inference");
  totals.append(sortedTable([{title: "figure", value: (row) => row.name}, ...pairColumns("", (row) => row, inUnit),
                             {title: "unit", value: (row) => row.unit}], comparison.totals));
  if (comparison.operators.length) {
    const operators = page.section("Operators", "All layers and heads together. Energy: of an operator's commands, with static power until it ends.");
    drawPairs(operators, comparison.operators.map((op) => ({name: format.operator(op.name), ...op.cycles})),
              (value) => format.grouped(value));
    operators.append(sortedTable([
      {title: "operator", value: (op) => op.name, show: (op) => format.operator(op.name)},
      ...pairColumns("cycles", (op) => op.cycles, (value) => format.grouped(value), true),
      ...pairColumns("bytes", (op) => op.bytes, (value) => format.prefixed(value, "B"), true),
      ...pairColumns("energy", (op) => op.energy_joules, (value) => format.prefixed(value, "J"), true),
    ], comparison.operators));
  }
  const energy = page.section("Energy", "Joules per inference by cause.");
  energy.append(sortedTable([{title: "cause", value: (row) => row.name},
                             ...pairColumns("", (row) => row, inUnit, true)],
                            comparison.energy.filter((row) => row.a || row.b), 2));
  const stalls = page.section("Blocks", "Time per inference by block and cause, those that differ.");
  stalls.append(sortedTable([
    {title: "block", value: (row) => row.block}, {title: "cause", value: (row) => row.cause},
    {title: "unit", value: (row) => row.unit},
    ...pairColumns("", (row) => row, (value) => format.grouped(value)),
  ], comparison.stalls.filter((row) => row.a !== row.b), 4));
}
