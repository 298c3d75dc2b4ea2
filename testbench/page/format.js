// Numbers and names for people.

const format = {
  /** "1,234,567"; a fraction keeps three significant digits. */
  grouped(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "-";
    if (Number.isInteger(value) || Math.abs(value) >= 1000) {
      return Math.round(value).toLocaleString("en-US");
    }
    return String(Number(value.toPrecision(3)));
  },

  /** "12.3 uJ": three significant digits and a prefix from f to T. */
  prefixed(value, unit) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "-";
    if (value === 0) return "0 " + unit;
    const prefixes = ["f", "p", "n", "\u00b5", "m", "", "k", "M", "G", "T"];
    let power = Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-12);
    power = Math.max(-5, Math.min(4, power));
    return (value / 1000 ** power).toPrecision(3) + " " + prefixes[power + 5] + unit;
  },

  percent(fraction) {
    return Number.isFinite(fraction) ? (100 * fraction).toFixed(1) + "%" : "-";
  },

  /** "+12.3%" of a change from `before` to `after`. */
  change(after, before) {
    if (!Number.isFinite(after / before)) return "-";
    const percent = 100 * (after / before - 1);
    return (percent >= 0 ? "+" : "") + percent.toFixed(1) + "%";
  },

  /** What all operators of a layer share is left out. */
  operator(name) {
    return name.replace(/^blocks\.[*0-9]+\./, "");
  },

  /** "blocks.3.attn.head7.scores": layers and heads are alike. */
  generalName(name) {
    return name.replace(/blocks\.\d+/, "blocks.*").replace(/\.head\d+/, ".head*");
  },

  /** For tooltips, which are HTML. */
  escaped(text) {
    const names = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
    return String(text).replace(/[&<>"']/g, (c) => names[c]);
  },

  /** Lines of a tooltip: a title, and pairs of label and value. */
  tooltip(title, lines) {
    const rows = lines.map(([label, value]) =>
        `<tr><td style="border:0;padding:0 10px 0 0">${format.escaped(label)}</td>` +
        `<td style="border:0;padding:0" class="number">${format.escaped(value)}</td></tr>`);
    return `<b>${format.escaped(title)}</b><table>${rows.join("")}</table>`;
  },
};

/** An element with a class, and text or elements in it. */
function element(tag, name, ...inner) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...inner);
  return made;
}
