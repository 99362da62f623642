// Tables that are wider than the page scroll within it. With the focus on them, arrow keys scroll them too.
document$.subscribe(() => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap")) part.tabIndex = 0;
});
