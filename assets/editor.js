// An editor for YAML in place of a textarea: marks at lines, and completion from a JSON Schema.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completions } from "./completion.js";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--value)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.separator, tags.punctuation, tags.meta], color: "var(--quiet)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--field)", color: "var(--text)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.45" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selected)",
  },
  ".cm-tooltip": { backgroundColor: "var(--field)", color: "var(--text)", border: "1px solid var(--border)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionInfo": { maxWidth: "28rem" },
  ".cm-panels": { backgroundColor: "var(--field)", color: "var(--text)", borderColor: "var(--border)" },
  ".cm-panel.cm-search": { fontFamily: "system-ui, sans-serif", padding: "6px 8px" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button": {
    font: "inherit", color: "var(--text)", background: "var(--field)", border: "1px solid var(--edge)", borderRadius: "6px",
  },
  ".cm-searchMatch, .cm-selectionMatch": { backgroundColor: "var(--found)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--selected)", outline: "1px solid var(--accent)" },
});

function mount(area, { schema, changed }) {
  const host = document.createElement("div");
  host.className = "editor";
  area.after(host);
  area.hidden = true;
  // In a shadow root the styles are adopted sheets, which a strict content security policy allows.
  const root = host.attachShadow({ mode: "open" });
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), closeBrackets(),
        yaml(), syntaxHighlighting(colours), look, lintGutter(), indentUnit.of("  "),
        search({ top: true }), highlightSelectionMatches(),
        EditorState.tabSize.of(2),
        EditorView.contentAttributes.of({ tabindex: "0", "aria-label": area.id }),
        schema ? autocompletion({ override: [completions(schema)] }) : [],
        keymap.of([
          { key: "Tab", run: acceptCompletion }, ...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...lintKeymap,
          ...historyKeymap, ...defaultKeymap, indentWithTab,
        ]),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
  const line = (number) => view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
  return {
    get text() { return view.state.doc.toString(); },
    set text(text) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }); },
    mark(marks) {
      view.dispatch(setDiagnostics(view.state, marks.map((each) => {
        const { from, to } = line(each.line);
        return { from: Math.min(from + Math.max(each.column - 1, 0), to), to, severity: each.severity, message: each.text };
      })));
    },
    goTo(number) {
      const { from } = line(number);
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
  };
}

window.fairleadEditor = { mount };
