// Helpers that create elements. Texts are inserted as text, never as markup, since names in a model
// are untrusted.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function option(value, text) {
  return element("option", { value }, text);
}
