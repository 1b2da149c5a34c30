// Looks at the slide that is shown: what is cut off, missing, or too small to read. Called with
// {width, height, least}: of a slide, and of its smallest letters, in pixels.
({width, height, least}) => {
  const slide = Reveal.getCurrentSlide();
  const scale = Reveal.getScale();
  const frame = slide.getBoundingClientRect();
  const foot = slide.querySelector('p.provenance');
  const said = new Set();
  for (const element of slide.querySelectorAll('*')) {
    if (element.closest('aside.notes')) continue;
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const name = `<${element.tagName.toLowerCase()}>`;
    const right = Math.max(box.right, box.left + element.scrollWidth * scale);  // a line that does not break sticks out of its box
    const over = Math.max(right - frame.left - width * scale, box.bottom - frame.top - height * scale, frame.left - box.left);
    if (over > 1) said.add(`${name} is cut off by ${Math.round(over / scale)} pixels`);
    if (element.closest('math') && element.tagName !== 'math') continue;
    if (foot && !foot.contains(element) && box.bottom > foot.getBoundingClientRect().top + 1)
      said.add(`${name} runs into the line of provenance`);
    if (element.tagName === 'IMG' && !element.naturalWidth) said.add(`picture ${element.getAttribute('src')} is missing`);
    const style = getComputedStyle(element);
    if (element.scrollWidth > element.clientWidth + 2 && style.overflowX !== 'visible')
      said.add(`${name} hides ${element.scrollWidth - element.clientWidth} pixels at its right`);
    const speaks = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (speaks && parseFloat(style.fontSize) < least)
      said.add(`letters of ${style.fontSize}: ${element.innerText.slice(0, 40)}`);
  }
  const title = (slide.querySelector('h1, h2, h3') || slide).innerText.trim().split('\n')[0];
  return {title, said: [...said], last: Reveal.isLastSlide()};
}
