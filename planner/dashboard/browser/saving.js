// Saves a picture with its title: as SVG, or drawn at three times its size as PNG.
const NAMESPACE = "http://www.w3.org/2000/svg";

function lines(text, most) {
  const found = [""];
  for (const word of text.split(" ")) {
    if ((found.at(-1) + " " + word).length > most && found.at(-1)) found.push(word);
    else found[found.length - 1] = (found.at(-1) + " " + word).trim();
  }
  return found;
}

function written(parts, words) {
  const root = document.createElementNS(NAMESPACE, "svg");
  const titles = lines(words.title, words.width / 8.6), subtitles = lines(words.subtitle, words.width / 6.6);
  const top = 14 + 22 * titles.length + 17 * subtitles.length, height = top + words.height + 8;
  for (const [name, value] of Object.entries({ xmlns: NAMESPACE, width: words.width, height, color: words.colour, fill: words.colour,
    viewBox: `0 0 ${words.width} ${height}`, "font-family": words.font })) root.setAttribute(name, value);
  const add = (name, attributes, text = "") => {
    const node = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    root.append(node);
  };
  add("rect", { width: words.width, height, fill: words.ground });
  titles.forEach((text, k) => add("text", { x: 8, y: 22 + 22 * k, "font-size": 16, "font-weight": 600 }, text));
  subtitles.forEach((text, k) => add("text", { x: 8, y: 20 + 22 * titles.length + 17 * k, "font-size": 12.5 }, text));
  for (const { node, x, y } of parts) {
    node.setAttribute("x", x);
    node.setAttribute("y", y + top);
    for (const side of ["width", "height"]) {
      if (!node.getAttribute(side)?.match(/^[\d.]+$/)) node.setAttribute(side, words[side]);
    }
    root.append(node);
  }
  return { text: new XMLSerializer().serializeToString(root), height };
}

function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePicture(parts, words) {
  const { text, height } = written(parts, words);
  const blob = new Blob([text], { type: "image/svg+xml" });
  if (words.format === "svg") return offer(blob, `${words.name}.svg`);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 3 * words.width;
    canvas.height = 3 * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((drawn) => offer(drawn, `${words.name}.png`));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}
