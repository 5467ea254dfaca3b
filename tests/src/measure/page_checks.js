// What is wrong with the page as it is laid out now, as a list of sentences. Run inside the page by the measurement.
(() => {
  const wrong = [];
  const visible = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE"].includes(parent.tagName) || !visible(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.right <= 0) continue;
      // A line's box is taller than its letters: neighbouring lines may share the air between them.
      const air = box.height * 0.17;
      boxes.push({ node, left: box.left + 0.7, right: box.right - 0.7, top: box.top + air, bottom: box.bottom - air });
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  const said = (node) => JSON.stringify(node.data.trim().slice(0, 40));
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom; j++) {
      const [one, other] = [boxes[i], boxes[j]];
      if (one.node !== other.node && one.left < other.right && other.left < one.right) {
        wrong.push(`text overlaps: ${said(one.node)} and ${said(other.node)}`);
      }
    }
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide in a window of ${root.clientWidth}`);
  for (const box of boxes) {
    if (box.right > root.clientWidth + 1) wrong.push(`text leaves the window: ${said(box.node)}`);
  }
  // Contrast as WCAG 2 measures it, AA: 4.5, or 3 for large text.
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([red, green, blue]) => {
    const part = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const paper = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = numbers(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  for (const { node } of boxes) {
    const element = node.parentElement;
    const style = getComputedStyle(element);
    const [ink, ground] = [light(numbers(style.color)), light(paper(element))];
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const sentence = `contrast ${contrast.toFixed(2)} of ${element.tagName}.${element.className}: ${said(node)}`;
    if (contrast < least && !seen.has(element.className)) {
      seen.add(element.className);
      wrong.push(sentence);
    }
  }
  if (boxes.length < 50) wrong.push(`only ${boxes.length} pieces of text are shown`);
  return wrong;
})()
