import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView, highlightSpecialChars, lineNumbers } from '@codemirror/view'
import { syntaxHighlighting } from '@codemirror/language'
import { tagHighlighter, tags } from '@lezer/highlight'
import type { DiffSides } from './diff-view.js'
import { languageOf } from './languages.js'

const DIFF = { scanLimit: 500, timeout: 200 }

const look = EditorView.theme({
  '&': { fontSize: '13px', backgroundColor: 'var(--paper)', color: 'var(--ink)', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'var(--wash)', color: 'var(--quiet)', borderColor: 'var(--line)' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine, .cm-insertedLine': { backgroundColor: 'var(--good-wash)' },
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { backgroundColor: 'var(--bad-wash)' },
  '& .cm-changedText, & .cm-deletedText': {
    background: 'color-mix(in oklab, currentColor 14%, transparent) !important',
    borderRadius: '3px',
  },
  '.cm-deletedChunk': { paddingLeft: '6px' },
  '.cm-collapsedLines': { background: 'var(--raised)', color: 'var(--quiet)', padding: '2px 12px' },
  '.cm-selectionBackground': { backgroundColor: 'var(--accent-wash)' },
  '.tok-keyword': { color: 'var(--busy)' },
  '.tok-string': { color: 'var(--good)' },
  '.tok-comment': { color: 'var(--quiet)' },
  '.tok-number': { color: 'var(--warn)' },
})

const colours = tagHighlighter([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], class: 'tok-keyword' },
  { tag: [tags.string, tags.regexp, tags.special(tags.string)], class: 'tok-string' },
  { tag: [tags.comment], class: 'tok-comment' },
  { tag: [tags.number, tags.bool, tags.null], class: 'tok-number' },
])

const pickedBy = ({ picked }: DiffSides): Extension =>
  EditorView.updateListener.of(({ state, selectionSet }) => {
    if (!selectionSet) return
    const { from, to } = state.selection.main
    const [first, last] = [state.doc.lineAt(from), state.doc.lineAt(to)]
    picked({ from: first.number, to: last.number, text: state.sliceDoc(first.from, last.to) })
  })

/** Shows both sides in a shadow root, whose style sheets the page's policy allows; the returned function removes it. */
export const openDiff = async (host: HTMLElement, sides: DiffSides): Promise<() => void> => {
  const { path, before, after, split } = sides
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const parent = document.createElement('div')
  parent.style.blockSize = '100%'
  shadow.replaceChildren(parent)
  const grammar = await languageOf(path)
  const common: Extension[] = [
    lineNumbers(),
    highlightSpecialChars(),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ 'aria-label': path, tabindex: '0' }),
    look,
    grammar,
    syntaxHighlighting(colours),
  ]
  if (split) {
    const view = new MergeView({
      a: { doc: before, extensions: common },
      b: { doc: after, extensions: [...common, pickedBy(sides)] },
      ...{ parent, root: shadow, gutter: true, diffConfig: DIFF, collapseUnchanged: { margin: 3, minSize: 6 } },
    })
    view.dom.style.blockSize = '100%'
    view.dom.style.overflow = 'auto'
    return () => view.destroy()
  }
  const unified = unifiedMergeView({
    original: before,
    mergeControls: false,
    highlightChanges: before !== '' && after !== '',
    diffConfig: DIFF,
    collapseUnchanged: { margin: 3, minSize: 6 },
    syntaxHighlightDeletions: false,
  })
  const view = new EditorView({
    ...{ doc: after, parent, root: shadow },
    extensions: [...common, pickedBy(sides), unified],
  })
  return () => view.destroy()
}
