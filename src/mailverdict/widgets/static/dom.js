// A page described by values: `h` describes an element, `patch` makes the page like the description. Elements that stay
// are kept, with focus and what was typed. All text goes through text nodes and attributes, never through HTML.

const CONTROLS = new Set(["button", "input", "select", "textarea", "summary"]);
const SVG_TAGS = new Set(["svg", "path", "circle"]);

function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter((child) => child || child === 0) };
}

function patch(parent, wanted) {
  const left = new Map(); // key or tag -> elements that can be used again
  for (const node of parent.childNodes) {
    const name = nameOf(node);
    if (!left.has(name)) left.set(name, []);
    left.get(name).push(node);
  }
  let place = parent.firstChild;
  for (const each of wanted) {
    const isText = typeof each !== "object";
    const name = isText ? "#text" : each.props.key !== undefined ? `key ${each.tag} ${each.props.key}` : each.tag;
    const node = left.get(name)?.shift() ?? create(each, isText, name);
    if (node !== place) parent.insertBefore(node, place);
    else place = place.nextSibling;
    if (isText) {
      if (node.data !== String(each)) node.data = String(each);
    } else {
      update(node, each);
    }
  }
  for (const nodes of left.values()) for (const node of nodes) node.remove();
}

function nameOf(node) {
  return node.nodeType === Node.TEXT_NODE ? "#text" : node.mvName ?? node.localName;
}

function create(each, isText, name) {
  if (isText) return document.createTextNode("");
  const node = SVG_TAGS.has(each.tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", each.tag)
    : document.createElement(each.tag);
  // JupyterLab looks for this from the element with the focus upwards; there some of its shortcuts match at once, such as
  // the arrows, which a choice needs.
  if (CONTROLS.has(each.tag)) node.setAttribute("data-lm-suppress-shortcuts", "true");
  node.mvName = name;
  node.mvProps = {};
  return node;
}

function update(node, each) {
  const before = node.mvProps;
  node.mvProps = each.props;
  for (const name of Object.keys(before)) if (!(name in each.props)) setProperty(node, name, undefined, before[name]);
  patch(node, each.children);
  for (const [name, value] of Object.entries(each.props)) setProperty(node, name, value, before[name]);
}

function setProperty(node, name, value, before) {
  if (name === "key") return;
  if (name.startsWith("on")) {
    const kind = name.slice(2).toLowerCase();
    if (before === undefined) node.addEventListener(kind, callHandler);
  } else if (name === "value") {
    // What a person is typing is not replaced.
    if (node.value !== String(value ?? "") && (node.ownerDocument.activeElement !== node || node.localName === "select")) {
      node.value = value ?? "";
    }
  } else if (name === "disabled" && node.localName === "button") {
    // Browsers move the focus away from a button with the attribute `disabled`.
    node.setAttribute("aria-disabled", Boolean(value));
  } else if (name === "checked" || name === "indeterminate") {
    node[name] = Boolean(value);
  } else if (value === before) {
    return;
  } else if (value === undefined || value === null || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}

function callHandler(event) {
  if (event.type === "click" && event.currentTarget.getAttribute("aria-disabled") === "true") return;
  const props = event.currentTarget.mvProps;
  const name = Object.keys(props).find((each) => each.toLowerCase() === `on${event.type}`);
  if (name && props[name]) props[name](event);
}
