// What may stand at a place of a YAML document, by the JSON Schema of its kind.

// The keys above a line, from the top, by indentation. An item of a list is half a step deeper than its dash.
function path(lines, row, indent) {
  const keys = [];
  for (let at = row - 1; at >= 0 && indent > 0; at--) {
    const text = lines[at];
    if (/^---/.test(text)) break;
    const found = text.match(/^(\s*)((?:- )*)([\w./-]+):\s*(.*)$/);
    if (!found) continue;
    const [, space, dashes, key] = found;
    const own = space.length + dashes.length;
    if (own < indent) {
      keys.unshift(key);
      indent = dashes ? space.length + 0.5 : own;
    } else if (dashes && space.length < indent && own === indent) {
      // A sibling that begins the item.
      indent = space.length + 0.5;
    }
  }
  return keys;
}

function document(lines, row) {
  let first = row, last = row;
  while (first > 0 && !/^---/.test(lines[first - 1])) first--;
  while (last + 1 < lines.length && !/^---/.test(lines[last + 1])) last++;
  return lines.slice(first, last + 1);
}

export function completions(schema) {
  const followed = (node) => {
    while (node && node.$ref) node = { ...node, ...schema.$defs[node.$ref.split("/").pop()], $ref: undefined };
    return node;
  };
  // A node and its alternatives, without lists around it.
  const variants = (node) => {
    node = followed(node);
    if (!node) return [];
    const parts = [...(node.anyOf || []), ...(node.oneOf || []), ...(node.allOf || [])].flatMap(variants);
    const items = node.items ? variants(node.items) : [];
    return [node, ...parts, ...items];
  };
  const top = (lines) => {
    const kind = lines.map((each) => each.match(/^kind:\s*(\w+)/)).find(Boolean)?.[1];
    const all = variants({ oneOf: schema.oneOf });
    return all.filter((each) => each.properties && (!kind || each.properties.kind?.const === kind));
  };
  const option = (type) => ([label, node]) => {
    const description = followed(node)?.description || node.description;
    return { label, type, info: node.description || description, apply: type === "property" ? `${label}: ` : label };
  };

  return (context) => {
    const lines = context.state.doc.toString().split("\n");
    const row = context.state.doc.lineAt(context.pos).number - 1;
    const before = lines[row].slice(0, context.pos - context.state.doc.lineAt(context.pos).from);
    const [, space, dashes] = before.match(/^(\s*)((?:- )*)/);
    const rest = before.slice(space.length + dashes.length);
    let nodes = top(document(lines, row));
    for (const key of path(lines, row, dashes ? space.length + 0.5 : space.length)) {
      nodes = nodes.flatMap((each) => each.properties?.[key] ? variants(each.properties[key]) : []);
    }
    const value = rest.match(/^([\w./-]+):\s+(\S*)$/);
    if (value) {
      const found = nodes.flatMap((each) => each.properties?.[value[1]] ? variants(each.properties[value[1]]) : []);
      const words = found.flatMap((each) => each.enum || (each.const === undefined ? [] : [each.const]))
        .concat(found.some((each) => each.type === "boolean") ? [true, false] : []);
      if (!words.length) return null;
      return { from: context.pos - value[2].length, options: [...new Set(words.map(String))].map((each) => option("enum")([each, {}])) };
    }
    if (!/^[\w./-]*$/.test(rest) || (!rest && !context.explicit)) return null;
    const known = new Map(nodes.flatMap((each) => Object.entries(each.properties || {})));
    if (!known.size) return null;
    return { from: context.pos - rest.length, options: [...known].map(option("property")), validFor: /^[\w./-]*$/ };
  };
}
