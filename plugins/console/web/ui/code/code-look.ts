import { syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView, highlightSpecialChars, lineNumbers } from '@codemirror/view'
import { codeColours } from './code-colours.js'

const look = EditorView.theme({
  '&': { fontSize: '13px', backgroundColor: 'var(--paper)', color: 'var(--ink)', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'var(--wash)', color: 'var(--quiet)', borderColor: 'var(--line)' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine, .cm-insertedLine': { backgroundColor: 'var(--good-wash)' },
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { backgroundColor: 'var(--bad-wash)' },
  '& .cm-changedText, & .cm-deletedText': {
    // Every colour of code stays legible on it.
    background: 'color-mix(in oklab, var(--ink) 7%, transparent) !important',
    boxShadow: 'inset 0 -2px 0 color-mix(in oklab, var(--ink) 40%, transparent)',
    borderRadius: '3px',
  },
  '.cm-deletedChunk': { paddingLeft: '6px' },
  '.cm-collapsedLines': { background: 'var(--raised)', color: 'var(--quiet)', padding: '2px 12px' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--accent-wash)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-panels': { backgroundColor: 'var(--wash)', color: 'var(--ink)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search': { padding: '8px 12px', fontFamily: 'var(--sans)', fontSize: '14px' },
  '.cm-panel.cm-search [name=close]': { color: 'inherit', minWidth: '28px', minHeight: '28px', cursor: 'pointer' },
  '.cm-textfield, .cm-button': {
    font: 'inherit',
    color: 'inherit',
    background: 'var(--paper)',
    border: '1px solid var(--edge)',
    borderRadius: 'var(--round)',
    padding: '2px 8px',
  },
  '.cm-searchMatch': { backgroundColor: 'var(--warn-wash)', outline: '1px solid var(--warn)' },
  // The library colours buttons in there for a green and a red one.
  '.cm-deletedChunk .cm-hunk-button': {
    font: '13px var(--sans)',
    color: 'inherit',
    background: 'var(--paper)',
    border: '1px solid var(--edge)',
    borderRadius: 'var(--round)',
    padding: '2px 10px',
    minHeight: '28px',
    cursor: 'pointer',
  },
  '.tok-keyword': { color: 'var(--busy)' },
  '.tok-string': { color: 'var(--good)' },
  '.tok-comment': { color: 'var(--quiet)' },
  '.tok-number': { color: 'var(--warn)' },
})

/** How code looks wherever it is shown or written. */
export const codeLook = (label: string, grammar: Extension): Extension[] => [
  lineNumbers(),
  highlightSpecialChars(),
  EditorView.contentAttributes.of({ 'aria-label': label }),
  look,
  grammar,
  syntaxHighlighting(codeColours),
]
