// What is wrong with the page for those who do not see it, or have a narrow screen: a list of faults.
() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const named = (one) =>
    (one.getAttribute("aria-label") || one.innerText || one.title || one.labels?.[0]?.textContent || one.textContent || "").trim();
  const isTold = (one) => one.hasAttribute("aria-hidden") || one.hasAttribute("role") || one.closest("[role=group]");
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const ids = all("[id]").map((one) => one.id);
  const faults = [];
  if (all("h1").length !== 1) faults.push("not one h1");
  for (const mark of ["main", "nav[aria-label]", "header.top"]) if (all(mark).length !== 1) faults.push(`not one ${mark}`);
  for (const one of all("button, a[href], input, select")) if (!named(one)) faults.push(`no name: ${one.outerHTML.slice(0, 120)}`);
  for (const one of all("table")) if (!one.caption) faults.push("a table without a caption");
  for (const one of all("figure.chart")) if (!one.querySelector("p.unseen").textContent) faults.push("a chart without words");
  for (const one of all("svg")) if (!isTold(one)) faults.push("an svg that is neither told nor hidden");
  if (new Set(ids).size !== ids.length) faults.push("an id twice");
  if (over > 0) faults.push(`wider than the screen by ${over}`);
  return faults;
}
