// The switch between light and dark on a standalone page.

export function followTheme() {
  const toggle = document.getElementById("theme-toggle");
  const preference = matchMedia("(prefers-color-scheme: dark)");
  const current = () => document.documentElement.dataset.theme ?? (preference.matches ? "dark" : "light");
  const show = () => {
    const dark = current() === "dark";
    toggle.textContent = dark ? "Light" : "Dark";
    toggle.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  };
  toggle.addEventListener("click", () => {
    document.documentElement.dataset.theme = current() === "dark" ? "light" : "dark";
    show();
  });
  preference.addEventListener("change", show);
  show();
}
