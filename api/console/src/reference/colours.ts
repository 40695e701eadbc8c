// The colours of the console: the two pages look alike, and share the scheme that was chosen there.
const CHOSEN = "mantine-color-scheme-value";
const LIGHT = {
  "bg-color": "#ffffff",
  "text-color": "#212529",
  "primary-color": "#0b6e63",
  "secondary-color": "#0b6e63",
  "header-color": "#212529",
  "nav-bg-color": "#f1f3f5",
  "nav-text-color": "#343a40",
  "nav-hover-bg-color": "#ffffff",
  "nav-hover-text-color": "#0b6e63",
};
const DARK = {
  "bg-color": "#242424",
  "text-color": "#dee2e6",
  "primary-color": "#63c5b8",
  "secondary-color": "#63c5b8",
  "header-color": "#dee2e6",
  "nav-bg-color": "#1f1f1f",
  "nav-text-color": "#c9c9c9",
  "nav-hover-bg-color": "#2e2e2e",
  "nav-hover-text-color": "#63c5b8",
};

/** Colour `page` by the scheme that was chosen in the console, or by that of the system, also when it changes. */
export function followScheme(page: HTMLElement): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const colour = (): void => {
    const chosen = localStorage.getItem(CHOSEN);
    const dark = chosen === "dark" || (chosen !== "light" && system.matches);
    document.documentElement.dataset.scheme = dark ? "dark" : "light";
    for (const [name, value] of Object.entries(dark ? DARK : LIGHT)) page.setAttribute(name, value);
  };
  system.addEventListener("change", colour);
  window.addEventListener("storage", colour);
  colour();
}
