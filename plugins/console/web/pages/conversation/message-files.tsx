import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { attachedTo, type AttachedFiles } from '../../data/files/attached.js'
import { served } from '../../data/live.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'

/** The files of the next message of a place, and the sentence about those that were left out. */
export interface MessageFiles {
  readonly files: AttachedFiles
  readonly said: string
  readonly possible: boolean
  add(files: readonly File[]): void
  /** Takes files that are pasted or dropped; other pastes go on into the text. */
  take(event: Event, transfer: DataTransfer | null): void
}

/** Files that go with the next message of a place. */
export const useMessageFiles = (place: string): MessageFiles => {
  const files = useMemo(() => attachedTo(place), [place])
  const said = useSignal('')
  const possible = served.value.has('workspace.upload')
  const add = (list: readonly File[]) => {
    said.value = files.add(list)
  }
  return {
    files,
    said: said.value,
    possible,
    add,
    take: (event, transfer) => {
      const list = [...(transfer?.files ?? [])]
      if (!possible || list.length === 0) return
      event.preventDefault()
      add(list)
    },
  }
}

const STATES = { sending: ' (uploading)', there: '', failed: ' (not uploaded)' } as const

/** The files that go with the next message. */
export const MessageFileList = ({ of: { files, said } }: { of: MessageFiles }) => {
  const list = files.list.value
  return (
    <>
      {list.length > 0 && (
        <ul class="row message-files" aria-label="Files of the message">
          {list.map(({ path, name, state, fault }) => (
            <li key={path} class="tag">
              {visibleName(name)}
              <span class="quiet">{STATES[state]}</span>
              <button class="link" type="button" onClick={() => files.remove(path)}>
                Remove<span class="visually-hidden"> {visibleName(name)}</span>
              </button>
              <FaultLine fault={fault ?? ''} />
            </li>
          ))}
        </ul>
      )}
      <FaultLine fault={said} />
    </>
  )
}

/** A button that chooses files for the next message. */
export const AttachButton = ({ to: { possible, add } }: { to: MessageFiles }) => {
  const input = useRef<HTMLInputElement>(null)
  if (!possible) return null
  return (
    <>
      <button class="button" type="button" onClick={() => input.current?.click()}>
        Attach<span class="visually-hidden"> files</span>
      </button>
      <input
        ref={input}
        class="visually-hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files for the message"
        onChange={event => {
          add([...(event.currentTarget.files ?? [])])
          event.currentTarget.value = ''
        }}
      />
    </>
  )
}
