// Arrow keys go from step to step, Home and End to the first and last of one half. Printing opens everything. All of it
// works without this script too: every step is a summary that Tab reaches.
(() => {
  "use strict";
  const steps = (list) => [...list.querySelectorAll("summary")].filter((one) => one.offsetParent !== null);
  document.addEventListener("keydown", (event) => {
    const list = event.target.closest?.(".half ol");
    if (!list || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = steps(list);
    const now = all.indexOf(event.target);
    if (now < 0) return;
    const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (next === undefined || !all[next]) return;
    event.preventDefault();
    all[next].focus();
  });
  // A link to a step or a scenario opens what hides it.
  const show = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
    }
    target.querySelector(":scope > details")?.setAttribute("open", "");
    target.scrollIntoView();
    (target.querySelector("summary") ?? target).focus({ preventScroll: true });
  };
  addEventListener("hashchange", show);
  show();
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });
})();
