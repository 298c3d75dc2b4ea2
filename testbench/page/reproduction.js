// The page of systole reproduce; its documents are those of --json, with pictures.

function verdictCounts(document_) {
  const pair = (name) => {
    const counts = document_.by_class[name];
    return counts ? `${counts.passed} of ${counts.passed + counts.failed}` : "-";
  };
  return {name: document_.name, published: pair("published"), calibrated: pair("calibrated"),
          follows: pair("follows"), failed: document_.failed,
          reference: document_.rows.filter((row) => row.verdict === "reference").length,
          seconds: document_.wall_seconds};
}

function verdictText(row) {
  if (row.ours !== null && !["published", "calibrated", "follows"].includes(row.class)) return row.class;
  if (row.verdict === "reference") return "reference";
  return (row.verdict === "fail" ? "FAILS " : "") + row.class + (row.bound ? ", " + row.bound : "");
}

function drawFigures(place, figures) {
  const names = Object.keys(figures[0]).filter((name) => name !== "name");
  place.append(sortedTable([
    {title: "", value: (line) => line.name},
    ...names.map((name) => ({title: name, number: true, value: (line) => line[name],
                             show: (line) => format.grouped(line[name])})),
  ], figures));
}

function drawSection(page, document_, section) {
  const place = page.section(`${document_.name}: ${section.title}`, section.notes.join(" "));
  if (section.figures) drawFigures(place, section.figures);
  const rows = document_.rows.filter((row) => row.section === section.title);
  if (!rows.length) return;
  place.append(sortedTable([
    {title: "", value: (row) => row.name},
    {title: "ours", number: true, value: (row) => row.ours, show: (row) => format.grouped(row.ours)},
    {title: "published", number: true, value: (row) => row.published, show: (row) => format.grouped(row.published)},
    {title: "unit", value: (row) => row.unit},
    {title: "differ", number: true, value: (row) => row.difference,
     show: (row) => row.difference === null ? "" : format.percent(row.difference)},
    {title: "verdict", value: verdictText, mark: (row) => row.verdict === "fail" ? "worse" : ""},
    {title: "source", value: (row) => row.source},
  ], rows));
}

async function drawReproductions(documents) {
  const page = new Page("Published figures beside ours");
  const counts = page.section("Verdicts", "Rows by class; references and what was measured or estimated are not judged.");
  counts.append(sortedTable([
    {title: "", value: (row) => row.name}, {title: "published", value: (row) => row.published},
    {title: "calibrated", value: (row) => row.calibrated}, {title: "follows", value: (row) => row.follows},
    {title: "fail", number: true, value: (row) => row.failed},
    {title: "for reference", number: true, value: (row) => row.reference},
    {title: "seconds", number: true, value: (row) => row.seconds, show: (row) => format.grouped(row.seconds)},
  ], documents.map(verdictCounts)));
  for (const document_ of documents) {
    for (const section of document_.sections) drawSection(page, document_, section);
    if (!document_.pictures.length) continue;
    const place = page.section(`${document_.name}: pictures`);
    for (const {name, png} of document_.pictures) {
      const image = element("img");
      image.src = "data:image/png;base64," + png;
      image.alt = name;
      image.style.maxWidth = "100%";
      place.append(image);
    }
  }
}
