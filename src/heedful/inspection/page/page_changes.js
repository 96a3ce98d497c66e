// The changes of a page that its pictures must follow: colours and width.

// Redraw when the colours or the width change, for as long as the view exists.
export function followPage(view, redraw) {
  const over = new AbortController();
  const changed = () => {
    if (view.isConnected) redraw();
    else over.abort();
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", changed, { signal: over.signal });
  const theme = new MutationObserver(changed);
  theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
  let width = view.clientWidth;
  const size = new ResizeObserver(() => {
    if (view.isConnected && view.clientWidth === width) return;
    width = view.clientWidth;
    changed();
  });
  size.observe(view);
  over.signal.addEventListener("abort", () => [theme, size].forEach((observer) => observer.disconnect()));
}
