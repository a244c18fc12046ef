// The buttons that save the chart of the same card.
function layersOf(chart) {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll("svg.main-svg")].map((layer) => {
    const place = layer.getBoundingClientRect(), node = layer.cloneNode(true);
    const texts = node.querySelectorAll("text"); // their colour on the page is that of the page's own style
    layer.querySelectorAll("text").forEach((text, k) => { texts[k].style.fill = getComputedStyle(text).fill; });
    node.setAttribute("width", place.width);
    node.setAttribute("height", place.height);
    return { node, x: place.left - frame.left, y: place.top - frame.top };
  });
}

export default function (component) {
  const { data, parentElement } = component;
  const saving = (format) => () => {
    const chart = document.querySelector(`.st-key-${data.key} .js-plotly-plot`);
    if (!chart) return;
    const style = getComputedStyle(chart.closest(".stApp") ?? document.body);
    savePicture(layersOf(chart), { ...data.words, format, colour: style.color, font: style.fontFamily,
      ground: style.backgroundColor, width: chart.clientWidth, height: chart.clientHeight });
  };
  parentElement.querySelector(".png").onclick = saving("png");
  parentElement.querySelector(".svg").onclick = saving("svg");
}
