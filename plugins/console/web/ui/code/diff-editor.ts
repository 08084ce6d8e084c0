import { getChunks, getOriginalDoc, MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { codeLook } from './code-look.js'
import type { DiffSides } from './diff-view.js'
import { languageOf } from './languages.js'
import { shadowHost } from './shadow-host.js'

const DIFF = { scanLimit: 500, timeout: 200 }

const pickedBy = ({ picked }: DiffSides): Extension =>
  EditorView.updateListener.of(({ state, selectionSet }) => {
    if (!selectionSet || !picked) return
    const { from, to } = state.selection.main
    const [first, last] = [state.doc.lineAt(from), state.doc.lineAt(to)]
    picked({ from: first.number, to: last.number, text: state.sliceDoc(first.from, last.to) })
  })

/** Both sides after one changed part was taken over from the later side to the earlier one, or the other way. */
const withHunk = (view: EditorView, at: number, towards: 'before' | 'after'): string | undefined => {
  const { state } = view
  const original = getOriginalDoc(state)
  const chunk = getChunks(state)?.chunks.find(({ fromB, endB }) => at >= fromB && at <= Math.max(fromB, endB))
  if (!chunk) return undefined
  const { fromA, fromB } = chunk
  const toA = Math.min(chunk.toA, original.length)
  const toB = Math.min(chunk.toB, state.doc.length)
  return towards === 'before'
    ? original.sliceString(0, fromA) + state.doc.sliceString(fromB, toB) + original.sliceString(toA)
    : state.doc.sliceString(0, fromB) + original.sliceString(fromA, toA) + state.doc.sliceString(toB)
}

/** Shows both sides in a shadow root, whose style sheets the page's policy allows; the answer takes it away. */
export const openDiff = async (host: HTMLElement, sides: DiffSides): Promise<() => void> => {
  const { path, before, after, split, hunks } = sides
  const grammar = await languageOf(path)
  const { parent, root } = shadowHost(host)
  const common: Extension[] = [
    codeLook(path, grammar),
    EditorState.readOnly.of(true),
    // Texts are compared and written as they are: their line ends are part of them.
    EditorState.lineSeparator.of('\n'),
    EditorView.contentAttributes.of({ tabindex: '0' }),
  ]
  if (split) {
    const view = new MergeView({
      a: { doc: before, extensions: common },
      b: { doc: after, extensions: [...common, pickedBy(sides)] },
      ...{ parent, root, gutter: true, diffConfig: DIFF, collapseUnchanged: { margin: 3, minSize: 6 } },
    })
    view.dom.style.blockSize = '100%'
    view.dom.style.overflow = 'auto'
    return () => view.destroy()
  }
  const control = (kind: 'accept' | 'reject'): HTMLElement => {
    const button = document.createElement('button')
    if (kind === 'reject' || !hunks) {
      button.hidden = true
      return button
    }
    button.type = 'button'
    button.className = 'cm-hunk-button'
    button.textContent = hunks.label
    button.onclick = () => {
      const text = withHunk(view, view.posAtDOM(button), hunks.towards)
      if (text !== undefined) hunks.take(text)
    }
    return button
  }
  const unified = unifiedMergeView({
    original: before,
    mergeControls: hunks ? control : false,
    highlightChanges: before !== '' && after !== '',
    diffConfig: DIFF,
    collapseUnchanged: { margin: 3, minSize: 6 },
    syntaxHighlightDeletions: false,
  })
  const view = new EditorView({ doc: after, parent, root, extensions: [...common, pickedBy(sides), unified] })
  return () => view.destroy()
}
