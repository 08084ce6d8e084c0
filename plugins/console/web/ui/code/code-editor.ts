import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching } from '@codemirror/language'
import { openSearchPanel, search, searchKeymap } from '@codemirror/search'
import { EditorSelection, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, keymap } from '@codemirror/view'
import { codeLook } from './code-look.js'
import { languageOf } from './languages.js'
import { shadowHost } from './shadow-host.js'

/** A text that is being written. */
export interface OpenEditor {
  text(): string
  /** Shows another text, as when the file changed; the place in it stays where it can. */
  replace(text: string): void
  find(): void
  /** Shows a line, from 1. */
  toLine(line: number): void
  close(): void
}

/** What an editor is opened with. */
export interface EditorOptions {
  readonly path: string
  readonly text: string
  readonly readOnly: boolean
  /** Called after each change. */
  readonly changed: () => void
}

/** The line ends of a text: those of Windows only where it has no others. */
const separatorOf = (text: string): string =>
  text.includes('\r\n') && !/[^\r]\n|^\n|\r(?!\n)/.test(text) ? '\r\n' : '\n'

/** Opens an editor in a shadow root. */
export const openEditor = async (host: HTMLElement, options: EditorOptions): Promise<OpenEditor> => {
  const { path, readOnly, changed } = options
  const grammar = await languageOf(path)
  const { parent, root } = shadowHost(host)
  const separator = separatorOf(options.text)
  const view = new EditorView({
    ...{ doc: options.text, parent, root },
    extensions: [
      codeLook(path, grammar),
      EditorState.lineSeparator.of(separator),
      EditorState.readOnly.of(readOnly),
      EditorView.contentAttributes.of(readOnly ? { tabindex: '0' } : { 'data-typed': 'yes' }),
      history(),
      drawSelection(),
      bracketMatching(),
      search({ top: true }),
      // Tab is left to the page: the keyboard must be able to leave the text.
      keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap]),
      EditorView.updateListener.of(({ docChanged }) => docChanged && changed()),
    ],
  })
  return {
    text: () => view.state.sliceDoc(),
    replace: text => {
      const insert = view.state.toText(text)
      const { anchor } = view.state.selection.main
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert },
        selection: EditorSelection.cursor(Math.min(anchor, insert.length)),
      })
    },
    find: () => void openSearchPanel(view),
    toLine: line => {
      const { from } = view.state.doc.line(Math.min(Math.max(1, line), view.state.doc.lines))
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'center' }) })
      view.focus()
    },
    close: () => view.destroy(),
  }
}
