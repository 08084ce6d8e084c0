import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import type { OpenedFile } from '../../data/files/typed-files.js'
import { useAction } from '../../ui/action.js'
import type { OpenEditor } from '../../ui/code/code-editor.js'
import { useCommands } from '../../ui/commands.js'
import { DiffView } from '../../ui/code/diff-view.js'
import { Markdown } from '../../ui/markdown.js'
import { FaultLine } from '../../ui/page.js'

type TextOnDisk = Extract<OpenedFile, { kind: 'text' }>

/** What a person wrote in a file and did not save: the text, and the bytes it began from. */
interface FileDraft {
  readonly text: string
  readonly base: string
}

/** How long typing rests before the draft is stored. */
const REST_MS = 300

const draftIn = (place: string): FileDraft | undefined => {
  try {
    const kept = draftOf(place)
    return kept ? (JSON.parse(kept) as FileDraft) : undefined
  } catch {
    return undefined
  }
}

interface TextFileProps {
  readonly path: string
  readonly disk: TextOnDisk
  readonly line: number | undefined
  readonly mayWrite: boolean
  /** Reads the file again. */
  readonly reread: () => void
}

/** A text file: written, kept as a draft while it is not saved, and compared where the file changed meanwhile. */
export const TextFile = ({ path, disk, line, mayWrite, reread }: TextFileProps) => {
  const place = `file:${path}`
  const box = useRef<HTMLDivElement>(null)
  const editor = useRef<OpenEditor>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const base = useRef(draftIn(place)?.base ?? disk.hash)
  /** What is on disk as far as this component knows: a save is known before the file is read again. */
  const known = useSignal(disk)
  const dirty = useSignal(false)
  const unkept = useSignal(false)
  const comparing = useSignal<string | undefined>(undefined)
  const previewing = useSignal<string | undefined>(undefined)
  const fault = useSignal('')
  const said = useSignal('')
  const action = useAction()
  const keep = () => {
    clearTimeout(timer.current)
    timer.current = undefined
    const text = editor.current?.text()
    if (text === undefined) return
    dirty.value = text !== known.value.text
    unkept.value = !keepDraft(place, dirty.value ? JSON.stringify({ text, base: base.current }) : '')
    if (!dirty.value) base.current = known.value.hash
  }
  const flush = () => timer.current !== undefined && keep()
  useEffect(() => {
    let gone = false
    const draft = draftIn(place)
    if (draft) dirty.value = draft.text !== disk.text
    import('../../ui/code/code-editor.js')
      .then(async ({ openEditor }) => {
        if (gone) return
        const opened = await openEditor(box.current!, {
          ...{ path, text: draft?.text ?? disk.text, readOnly: !mayWrite },
          changed: () => {
            dirty.value = true
            said.value = ''
            clearTimeout(timer.current)
            timer.current = setTimeout(keep, REST_MS)
          },
        })
        if (gone) return opened.close()
        editor.current = opened
        keep()
        if (line !== undefined) opened.toLine(line)
      })
      .catch(error => {
        fault.value = faultSentence(error)
      })
    addEventListener('pagehide', flush)
    return () => {
      gone = true
      removeEventListener('pagehide', flush)
      flush()
      editor.current?.close()
      editor.current = undefined
    }
  }, [])
  useEffect(() => {
    if (line !== undefined) editor.current?.toLine(line)
  }, [line])
  useEffect(() => {
    flush()
    known.value = disk
    if (dirty.value || !editor.current) return keep()
    if (editor.current.text() !== disk.text) editor.current.replace(disk.text)
    base.current = disk.hash
    keep()
  }, [disk.hash])
  const save = () =>
    void action.run(async () => {
      if (!editor.current || !mayWrite) return
      const text = editor.current.text()
      try {
        const { hash } = await askDaemon('PUT /workspace/file', { path, content: text, baseHash: base.current })
        known.value = { kind: 'text', text, hash }
        base.current = hash
        said.value = 'Saved.'
        keep()
      } catch (error) {
        // What is there by now is read, and shown beside what was to be saved.
        if (error instanceof Refusal && error.reason === 'conflict') reread()
        throw error
      }
    })
  const conflict = dirty.value && base.current !== known.value.hash
  const settle = (mine: boolean) => {
    action.clear()
    comparing.value = undefined
    if (!mine) editor.current?.replace(known.value.text)
    base.current = known.value.hash
    keep()
  }
  const covered = previewing.value !== undefined || (comparing.value !== undefined && conflict)
  const markdown = /\.(?:md|markdown)$/i.test(path)
  useCommands([
    ...(mayWrite ? [{ id: 'save', label: 'Save this file', group: 'Files', keys: 'mod+s', run: save }] : []),
    {
      id: 'find in file',
      label: 'Find in this file',
      group: 'Files',
      keys: 'mod+f',
      run: () => editor.current?.find(),
    },
  ])
  return (
    <>
      <div class="row file-state">
        {mayWrite && (
          <button
            class="button primary"
            type="button"
            disabled={action.busy || !dirty.value || conflict}
            onClick={save}
          >
            Save
          </button>
        )}
        {dirty.value && (
          <button
            class="button"
            type="button"
            onClick={() => {
              editor.current?.replace(known.value.text)
              keep()
            }}
          >
            Undo all changes
          </button>
        )}
        {markdown && (
          <button
            class="button"
            type="button"
            aria-pressed={previewing.value !== undefined}
            onClick={() => {
              previewing.value = previewing.value === undefined ? (editor.current?.text() ?? disk.text) : undefined
            }}
          >
            Preview
          </button>
        )}
        <span class="quiet small" role="status">
          {dirty.value
            ? unkept.value
              ? 'Not saved. This browser cannot keep the text over a reload.'
              : 'Not saved; the text is kept in this browser.'
            : said.value}
        </span>
      </div>
      <FaultLine fault={action.fault || fault.value} />
      {conflict && (
        <div class="notice warn stack conflict-notice" role="alert">
          <p>This file changed since you began. Your text is kept.</p>
          <div class="row">
            <button
              class="button"
              type="button"
              aria-pressed={comparing.value !== undefined}
              onClick={() => {
                comparing.value = comparing.value === undefined ? (editor.current?.text() ?? '') : undefined
              }}
            >
              Show both
            </button>
            <button class="button" type="button" onClick={() => settle(true)}>
              Keep mine
            </button>
            <button class="button" type="button" onClick={() => settle(false)}>
              Take the one on disk
            </button>
          </div>
        </div>
      )}
      {comparing.value !== undefined && conflict && (
        <>
          <p class="side-note quiet small">Removed lines are those on disk, added lines are yours.</p>
          <DiffView path={path} before={known.value.text} after={comparing.value} split={false} />
        </>
      )}
      {previewing.value !== undefined && (
        <div class="pane-body scrolls" tabIndex={0} role="region" aria-label="Preview">
          <Markdown text={previewing.value} />
        </div>
      )}
      <div ref={box} class={`diff-host${covered ? ' put-away' : ''}`} />
    </>
  )
}
