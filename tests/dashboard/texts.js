// Texts of the page that are cut or lie on one another, and whether the page scrolls sideways.
() => {
  const faults = [];
  const seen = e => { const r = e.getBoundingClientRect(); const s = getComputedStyle(e);
    return r.width > 1 && r.height > 1 && s.visibility !== 'hidden' && s.opacity !== '0' && e.checkVisibility(); };
  const scrolls = e => { for (let p = e; p; p = p.parentElement) { const o = getComputedStyle(p).overflowX;
    if ((o === 'auto' || o === 'scroll') && p.scrollWidth > p.clientWidth + 1) return true; } return false; };
  const main = document.querySelector('[data-testid=stMain]');
  const texts = [];
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.textContent.trim() || !e || !seen(e) || e.closest('.page-name, style, script, [aria-hidden=true]')) continue;
    const range = document.createRange(); range.selectNodeContents(node);
    const r = range.getBoundingClientRect();
    if (r.width < 1) continue;
    texts.push([node.textContent.trim().slice(0, 60), r, e]);
    for (let p = e; p && p !== main; p = p.parentElement) {
      const s = getComputedStyle(p);
      if (s.overflowX === 'hidden' || s.overflowX === 'clip' || p.tagName === 'svg') {
        const b = p.getBoundingClientRect();
        if ((r.right > b.right + 2 || r.left < b.left - 2) && !scrolls(p)) { faults.push('cut: ' + node.textContent.trim().slice(0, 60)); break; }
      }
    }
  }
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [a, r, e] = texts[i], [b, q, f] = texts[j];
    const w = Math.min(r.right, q.right) - Math.max(r.left, q.left), h = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
    if (w > 3 && h > 4 && !e.contains(f) && !f.contains(e)) faults.push('overlap: ' + a + ' | ' + b);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) faults.push('sideways scroll');
  return faults;
}
