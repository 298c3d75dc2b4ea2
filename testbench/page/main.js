// Draws the page and says in the root element when it is done (data-ready: ms since it was opened) or
// why not (data-failure), for people and for tests.

const root = document.documentElement;

function fail(error) {
  root.dataset.failure = String(error && error.message || error);
  const place = element("p", "failure", `This report could not be drawn: ${root.dataset.failure}`);
  document.getElementById("report").prepend(place);
}

addEventListener("error", (event) => fail(event.error || event.message));
addEventListener("unhandledrejection", (event) => fail(event.reason));
addEventListener("resize", () => fitCharts());
// A page of paper is narrower than a window: 182 mm at 96 dots per inch.
addEventListener("beforeprint", () => fitCharts(680));
addEventListener("afterprint", () => fitCharts());

const data = JSON.parse(document.getElementById("data").textContent);
(data.comparison ? drawComparison(data.comparison) :
 data.reproductions ? drawReproductions(data.reproductions) : drawRun(data))
    .then(() => { root.dataset.ready = Math.round(performance.now()); });
