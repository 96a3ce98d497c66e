// Light, dark, or as the system has it; the choice is kept.

const KEY = "heedful-theme";
const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

/** Make a button switch between the themes. */
export function themeButton(button) {
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = SIGNS[theme];
    button.setAttribute("aria-label", `Theme: ${theme}`);
    button.title = `Theme: ${theme}`;
    button.dataset.theme = theme;
  };
  const kept = localStorage.getItem(KEY);
  apply(THEMES.includes(kept) ? kept : "system");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(button.dataset.theme) + 1) % THEMES.length];
    localStorage.setItem(KEY, next);
    apply(next);
  });
}
