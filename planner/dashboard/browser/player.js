// Plays the step timeline: moves the edge of what the pictures show, and says in words what the step did.
const players = new WeakMap();
const WHOLE_S = 24; // a whole timeline at 1×

function figuresAt(rows, step) {
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (rows[middle][0] <= step) low = middle; else high = middle - 1;
  }
  return rows[low];
}

function counted(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

function told(data, step) {
  const [, decodes, prompt, waiting, blocks] = figuresAt(data.figures, step);
  const does = [];
  if (decodes) does.push(`${counted(decodes, "sequence")} decode${decodes === 1 ? "s" : ""}`);
  if (prompt) does.push(`${counted(prompt, "prompt token")}`);
  const took = data.durations_ms.length ? ` takes ${Number(data.durations_ms[step].toPrecision(3)).toLocaleString("en")} ms` : "";
  const pool = (100 * blocks) / Math.max(1, data.num_blocks);
  return `Step ${(data.before + step + 1).toLocaleString("en")}${took}: ${does.join(" and ")} · ` +
    `${waiting.toLocaleString("en")} waiting · ${counted(blocks, "KV block")} in use (${pool < 10 ? pool.toFixed(1) : pool.toFixed(0)} % of the pool)`;
}

export default function (component) {
  const { data, parentElement } = component;
  const find = (name) => parentElement.querySelector("." + name);
  const player = players.get(parentElement) ?? { wide: "", shown: 0, playing: false, frame: 0 };
  players.set(parentElement, player);
  const steps = data.edges.length - 1;
  const fresh = player.wide !== data.wide;
  if (fresh) {
    player.wide = data.wide;
    find("wide").innerHTML = data.wide;
    find("narrow").innerHTML = data.narrow;
    player.shown = steps;
    player.playing = false;
    cancelAnimationFrame(player.frame);
  }
  const play = find("play"), scrub = find("scrub"), speed = find("speed");
  scrub.max = steps;

  const show = (position) => {
    player.shown = Math.min(steps, Math.max(1, position));
    const step = Math.min(steps, Math.floor(player.shown)), part = player.shown - step;
    const share = data.edges[step] + part * ((data.edges[step + 1] ?? data.edges[step]) - data.edges[step]);
    const whole = player.shown >= steps;
    for (const picture of parentElement.querySelectorAll(".wide > svg, .narrow > svg")) {
      const x = Number(picture.dataset.left) + share * Number(picture.dataset.plot);
      const width = picture.viewBox.baseVal.width;
      picture.querySelector(".reveal").setAttribute("width", whole ? width : x);
      picture.querySelector(".future").setAttribute("visibility", whole ? "hidden" : "visible");
      const head = picture.querySelector(".playhead");
      head.setAttribute("visibility", whole ? "hidden" : "visible");
      head.setAttribute("x1", x);
      head.setAttribute("x2", x);
    }
    scrub.value = step;
    scrub.setAttribute("aria-valuetext", `step ${data.before + step}`);
    find("now").textContent = told(data, step - 1);
  };
  const stop = () => {
    player.playing = false;
    cancelAnimationFrame(player.frame);
    play.textContent = "▶ Play";
    play.setAttribute("aria-label", "Play");
  };
  const start = () => {
    player.playing = true;
    play.textContent = "❚❚ Pause";
    play.setAttribute("aria-label", "Pause");
    if (player.shown >= steps) show(1);
    let before = performance.now();
    const move = (now) => {
      if (!player.playing) return;
      show(player.shown + ((now - before) / 1000 / WHOLE_S) * steps * Number(speed.value));
      before = now;
      if (player.shown >= steps) stop(); else player.frame = requestAnimationFrame(move);
    };
    player.frame = requestAnimationFrame(move);
  };
  play.onclick = () => (player.playing ? stop() : start());
  find("back").onclick = () => { stop(); show(Math.ceil(player.shown) - 1); };
  find("on").onclick = () => { stop(); show(Math.floor(player.shown) + 1); };
  scrub.oninput = () => { stop(); show(Number(scrub.value)); };
  if (fresh) stop();
  show(player.shown);

  const saving = (format) => () => {
    const source = find("wide").querySelector("svg").cloneNode(true);
    const style = getComputedStyle(find("player"));
    savePicture([{ node: source, x: 0, y: 0 }], { ...data.words, format, colour: style.color, font: style.fontFamily,
      ground: getComputedStyle(document.querySelector(".stApp") ?? document.body).backgroundColor,
      width: source.viewBox.baseVal.width, height: source.viewBox.baseVal.height });
  };
  find("png").onclick = saving("png");
  find("svg").onclick = saving("svg");
  return stop;
}
