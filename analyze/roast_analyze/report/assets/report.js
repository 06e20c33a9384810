// What the page does by itself: theme, figures, tables. It loads nothing, and text of the
// trace only ever becomes text: no innerHTML anywhere.
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => { document.getElementById("status").textContent = text; };

  // ---- Theme: the system's until the reader chooses -------------------------------------
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const store = {
    // Some browsers forbid storage to pages opened from a file.
    get() { try { return localStorage.getItem("roast-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("roast-theme", value); } catch { /* not kept */ } },
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const button = document.getElementById("theme");
  const showTheme = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    drawn.forEach(recolour);
    document.dispatchEvent(new Event("roast-theme"));
  };
  const drawn = [];
  if (["light", "dark"].includes(store.get())) root.dataset.theme = store.get();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store.set(root.dataset.theme);
    showTheme();
  });
  systemDark.addEventListener("change", showTheme);

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  function themed(layout) {
    const change = {
      "font.color": css("--ink"),
      "font.family": css("--sans"),
      "font.size": 12,
      "hoverlabel.bgcolor": css("--raised"),
      "hoverlabel.bordercolor": css("--soft"),
      "hoverlabel.font.color": css("--ink"),
      "hoverlabel.align": "left",
      "modebar.bgcolor": "rgba(0,0,0,0)",
      "modebar.color": css("--soft"),
      "modebar.activecolor": css("--accent"),
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      change[`${axis}.gridcolor`] = css("--line");
      change[`${axis}.linecolor`] = css("--line");
      change[`${axis}.tickfont.color`] = css("--soft");
      change[`${axis}.title.font.color`] = css("--soft");
    }
    return change;
  }
  function assign(target, changes) {
    for (const [path, value] of Object.entries(changes)) {
      const steps = path.split(".");
      const last = steps.pop();
      steps.reduce((node, step) => (node[step] ??= {}), target)[last] = value;
    }
  }
  const recolour = (canvas) => Plotly.relayout(canvas, themed(canvas.layout));

  // ---- Figures ---------------------------------------------------------------------------
  const CONFIG = {
    responsive: true,
    displaylogo: false,
    typesetMath: false,
    // Named one by one: plotly's own set has buttons that send the chart to a server.
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
  };

  async function loadPlotly() {
    const library = document.getElementById("plotly-gzip-base64");
    const script = document.createElement("script");
    script.textContent = await unpackedText(library);
    document.head.append(script);
    library.remove();
    if (typeof Plotly === "undefined") throw new Error("The drawing library did not start.");
  }

  const specOf = (figure) => unpacked(figure.querySelector("script"));

  async function draw(figure) {
    const canvas = figure.querySelector(".canvas");
    const { data, layout } = await specOf(figure);
    const name = figure.dataset.name;
    assign(layout, themed(layout));
    if (canvas.clientWidth < 600) narrow(canvas, data, layout);
    const config = { ...CONFIG, toImageButtonOptions: { filename: `${name}`, scale: 2 } };
    canvas.textContent = "";
    await Plotly.newPlot(canvas, data, layout, config);
    // What the canvas says is in its label; its buttons remain to be reached.
    for (const drawing of all(".main-svg", canvas)) drawing.setAttribute("aria-hidden", "true");
    drawn.push(canvas);
    figure.dataset.state = "drawn";
  }

  // On a narrow screen the legend has many lines, which may not be taken from the drawing,
  // and the names of the lanes may take no more than a quarter of the width.
  function narrow(canvas, data, layout) {
    const entries = data.filter((trace) => trace.name && trace.showlegend !== false).length;
    layout.height += 9 * entries;
    canvas.style.height = `${layout.height}px`;
    const axis = layout.yaxis;
    if (!axis?.ticktext) return;
    axis.tickfont = { ...axis.tickfont, size: 10 };
    axis.ticktext = axis.ticktext.map((text) => {
      const plain = plainText(text);
      return plain.length > 12 ? escapeLabel(`${plain.slice(0, 11)}…`) : text;
    });
  }

  const plainText = (label) =>
    label.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const escapeLabel = (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  // Between two figures the page is shown, and answers the reader.
  const nextFrame = () => new Promise((done) => (
    document.hidden ? setTimeout(done) : requestAnimationFrame(() => setTimeout(done))));

  // With more rows than these, tables and figures are painted while they are in sight only: else
  // each frame of every figure takes half as long again. That begins with the first input, so
  // that programs, and pictures of the whole page, find all of it.
  const FEW_LONG_ROWS = 600;
  async function layOutTables() {
    for (const scroll of all(".scroll.long")) {
      scroll.classList.add("laid-out");
      await nextFrame();
    }
  }
  function paintWhatIsInSight() {
    const begin = () => root.classList.add("long-page");
    for (const input of ["pointermove", "pointerdown", "wheel", "keydown"]) {
      addEventListener(input, begin, { capture: true, once: true, passive: true });
    }
  }

  async function drawAll() {
    const figures = all("figure.plot");
    // These go first: plotly takes longer to start than they take to be drawn.
    for (const drawOne of drawings) {
      await drawOne().catch(reportError);
      await nextFrame();
    }
    const areFew = all(".scroll.long tbody tr").length <= FEW_LONG_ROWS;
    if (areFew) await layOutTables();
    try {
      if (figures.length) await loadPlotly();
    } catch (error) {
      for (const figure of figures) figure.querySelector(".waiting").textContent = error.message;
      root.dataset.state = "undrawn";
      return;
    }
    for (const figure of figures) {
      await draw(figure);
      await nextFrame();
    }
    root.dataset.state = "drawn";
    if (areFew) return;
    await layOutTables();
    paintWhatIsInSight();
  }

  // A map has a value for each row and each column; an axis names them, or counts.
  function mapRows(trace, { xaxis, yaxis }) {
    const { x, y, z } = trace.meta.columns;
    const named = ({ tickvals, ticktext }, place) => (ticktext ? plainText(ticktext[tickvals.indexOf(place)]) : place);
    return trace.z.flatMap((values, i) => values.flatMap((value, j) => (value === null ? [] : [{
      series: plainText(trace.name), [y]: named(yaxis, trace.y[i]), [x]: named(xaxis, trace.x[j]), [z]: value,
    }])));
  }

  async function figureRows(figure) {
    const tables = [];
    const { data, layout } = await specOf(figure);
    for (const trace of data) {
      const columns = trace.meta?.columns;
      if (!columns) continue;
      if (trace.z) {
        tables.push(...mapRows(trace, layout));
        continue;
      }
      const length = (trace.x ?? trace.y).length;
      for (let i = 0; i < length; i++) {
        const row = { series: plainText(trace.name ?? "") };
        for (const [attribute, name] of Object.entries(columns)) {
          if (attribute === "customdata") {
            name.forEach((column, j) => { row[column] = unlabelled(trace.customdata[i][j]); });
          } else {
            row[name] = trace[attribute][i];
          }
        }
        tables.push(row);
      }
    }
    const header = [...new Set(tables.flatMap(Object.keys))];
    return [header, ...tables.map((row) => header.map((name) => row[name] ?? ""))];
  }
  const unlabelled = (value) => (typeof value === "string" ? plainText(value) : value);

  // ---- Tables ----------------------------------------------------------------------------
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const bodyRows = (table) => {
    settle(table.querySelector("tbody"));
    return all("tbody tr", table);
  };
  // Pictures, and what is folded away, are no text of a cell.
  const cellText = (cell) => {
    if (!cell.childElementCount) return cell.textContent;
    const parts = [...cell.childNodes].filter((part) => !part.matches?.("details, svg"));
    return parts.map((part) => part.textContent).join("");
  };

  // What changes many rows changes first those that the reader sees, the others frame by frame.
  const [FEW_ROWS, ROWS_AT_ONCE] = [200, 60];
  const unfinished = new Map();
  const settle = (body) => unfinished.get(body)?.();
  function inParts(body, rows, change) {
    settle(body);
    let done = 0;
    const next = (count) => { change(rows.slice(done, done + count)); done += count; };
    const finish = () => { unfinished.delete(body); next(rows.length); };
    next(rows.length > FEW_ROWS ? ROWS_AT_ONCE : rows.length);
    unfinished.set(body, finish);
    (async () => {
      while (done < rows.length) {
        await nextFrame();
        if (unfinished.get(body) !== finish) return;
        next(ROWS_AT_ONCE);
      }
      unfinished.delete(body);
    })();
  }

  // Rows that come and go would make the browser measure every cell anew: from the first
  // time on, columns keep the widths that they had.
  function keepWidths(table) {
    if (table.style.tableLayout) return;
    const widths = all("th", table).map((th) => th.getBoundingClientRect().width);
    table.style.width = `${table.getBoundingClientRect().width}px`;
    all("th", table).forEach((th, i) => { th.style.width = `${widths[i]}px`; });
    table.style.tableLayout = "fixed";
  }

  function sortBy(table, heading) {
    keepWidths(table);
    const headings = all("th", table);
    const index = headings.indexOf(heading);
    const numeric = heading.classList.contains("n");
    const before = heading.getAttribute("aria-sort");
    // Of numbers the largest are looked for first, of names the first.
    const first = numeric ? "descending" : "ascending";
    const order = before === first ? (numeric ? "ascending" : "descending") : first;
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = bodyRows(table).map((row) => {
      const cell = row.cells[index];
      const key = numeric ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cellText(cell);
      return { row, key, missing: key === null || key === "" };
    });
    keyed.sort((a, b) => {
      if (a.missing || b.missing) return a.missing - b.missing;
      return sign * (numeric ? a.key - b.key : words.compare(a.key, b.key));
    });
    const [body] = table.tBodies;
    body.replaceChildren();
    inParts(body, keyed.map((item) => item.row), (rows) => body.append(...rows));
    table.closest(".scroll").scrollTop = 0;
    say(`Sorted by ${heading.textContent.trim()}, ${order}`);
  }

  const texts = new WeakMap();
  function filterRows(block, text) {
    keepWidths(block.querySelector("table"));
    const wanted = text.trim().toLowerCase();
    const rows = bodyRows(block);
    // What a picture says is no text of the row.
    const said = (row) => (row.querySelector("svg") ? [...row.cells].map(cellText).join("\n") : row.textContent);
    const shown = [];
    for (const row of rows) {
      texts.has(row) || texts.set(row, said(row).toLowerCase());
      if (texts.get(row).includes(wanted)) shown.push(row);
      else row.hidden = true;
    }
    inParts(block.querySelector("tbody"), shown, (some) => some.forEach((row) => { row.hidden = false; }));
    const left = shown.length;
    const counter = block.querySelector(".rows");
    counter.textContent = wanted ? `${left.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : rows.length.toLocaleString("en");
    say(`${left} of ${rows.length} rows`);
  }

  function tableRows(block, raw) {
    const header = all("th", block).map((th) => th.dataset.column);
    const rows = bodyRows(block).filter((row) => !row.hidden);
    return [header, ...rows.map((row) => [...row.cells].map(
      (cell) => (raw && cell.dataset.v !== undefined ? cell.dataset.v : cellText(cell))))];
  }

  const spentRows = (figure) => [
    ["part", "seconds"],
    ...all("li", figure).map((li) => [li.querySelector(".what").textContent, li.dataset.seconds]),
  ];

  // ---- Taking data away ------------------------------------------------------------------
  function asCsv(rows) {
    const quote = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    return rows.map((row) => row.map((value) => quote(String(value))).join(",")).join("\r\n") + "\r\n";
  }
  const asTsv = (block) =>
    tableRows(block, true).map((row) => row.map((v) => v.replace(/[\t\r\n]+/g, " ")).join("\t")).join("\n");
  function download(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Without permission to write to the clipboard: the way browsers had before.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  // A click or the focus beside an open box with SQL closes it: it covers what is below.
  function closeBoxesBeside(target) {
    for (const box of all(".tools details[open]")) if (!box.contains(target)) box.open = false;
  }
  document.addEventListener("focusin", ({ target }) => {
    closeBoxesBeside(target);
    // A heading of which a part is in sight is not brought in by the browser. One that the
    // pointer is on stays where it is.
    if (target.matches("th :focus-visible")) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  document.addEventListener("click", async (event) => {
    const heading = event.target.closest("th");
    if (heading) return sortBy(heading.closest("table"), heading);
    closeBoxesBeside(event.target);
    const action = event.target.closest("[data-do]");
    if (!action) return undefined;
    const block = action.closest("[data-name]");
    if (action.dataset.do === "copy") {
      const done = await copy(block.classList.contains("snippet") ? block.querySelector("pre").textContent : asTsv(block));
      const label = action.textContent;
      action.textContent = done ? "Copied" : "No clipboard";
      say(action.textContent);
      setTimeout(() => { action.textContent = label; }, 1500);
      return undefined;
    }
    const rows = block.shownRows ? block.shownRows()
      : block.classList.contains("plot") ? await figureRows(block)
      : block.classList.contains("spent") ? spentRows(block) : tableRows(block, true);
    download(`${block.dataset.name}.csv`, asCsv(rows));
    return undefined;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const box of all(".tools details[open]")) { box.open = false; box.querySelector("summary").focus(); }
  });
  document.addEventListener("input", (event) => {
    const block = event.target.closest(".table");
    if (block && event.target.type === "search") filterRows(block, event.target.value);
  });
  // A cell makes room for what is folded in it. A selector that looks for it would cost each
  // filter and each order of rows a look at every cell.
  document.addEventListener("toggle", ({ target }) => {
    target.closest?.("td")?.classList.toggle("unfolded", target.open);
  }, true);
  // What an ellipsis cuts off is shown when the pointer rests on it.
  document.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.("td");
    if (cell && !cell.title && cell.scrollWidth > cell.clientWidth) cell.title = cellText(cell);
  });

  // ---- Where the reader is ---------------------------------------------------------------
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  function markCurrent() {
    const line = innerHeight * 0.3;
    let current = null;
    for (const [id] of links) if (document.getElementById(id).getBoundingClientRect().top <= line) current = id;
    const bottom = scrollY + innerHeight >= document.body.scrollHeight - 4;
    if (bottom && scrollY > 0) current = [...links.keys()].at(-1);
    for (const [id, link] of links) {
      if (id === (current ?? "verdict")) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  addEventListener("scroll", markCurrent, { passive: true });
  markCurrent();

  // ---- Print: on white, as wide as the paper ---------------------------------------------
  const PRINT_WIDTH_PX = 700;
  let themeBefore;
  addEventListener("beforeprint", () => {
    for (const finish of [...unfinished.values()]) finish();
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
    document.dispatchEvent(new Event("roast-theme"));
    for (const canvas of drawn) {
      Plotly.relayout(canvas, { ...themed(canvas.layout), width: PRINT_WIDTH_PX, autosize: false });
    }
  });
  addEventListener("afterprint", () => {
    if (themeBefore) root.dataset.theme = themeBefore;
    else delete root.dataset.theme;
    document.dispatchEvent(new Event("roast-theme"));
    for (const canvas of drawn) {
      Plotly.relayout(canvas, { ...themed(canvas.layout), width: null, autosize: true });
    }
  });

  showTheme();
  drawAll();
})();
