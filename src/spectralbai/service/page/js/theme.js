// Light or dark: as the system says, or as chosen here. Runs before the page is painted.
"use strict";
(() => {
  const KEY = "spectralbai-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    // storage is forbidden: the choice lasts as long as the page
  }
  const dark = () => (chosen ?? (system.matches ? "dark" : "light")) === "dark";

  function show() {
    document.documentElement.dataset.theme = dark() ? "dark" : "light";
    const button = document.getElementById("theme");
    if (button !== null) {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
    }
  }

  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = dark() ? "light" : "dark";
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // as above
      }
      show();
    });
  });
})();
