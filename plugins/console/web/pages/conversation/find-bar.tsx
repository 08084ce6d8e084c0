import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { RunFeed } from '../../data/run-feed.js'
import { findRows } from '../../run/find.js'
import { countText } from '../../ui/format.js'

interface FindBarProps {
  readonly feed: RunFeed
  readonly show: (index: number) => void
  readonly close: () => void
}

/** Searches the whole record, and reads it for that. */
export const FindBar = ({ feed, show, close }: FindBarProps) => {
  const words = useSignal('')
  const at = useSignal(0)
  const box = useRef<HTMLInputElement>(null)
  const { rows, earlier } = feed.state.value
  useEffect(() => box.current?.focus(), [])
  useEffect(() => {
    if (earlier > 0) void feed.earlier()
  }, [earlier])
  const found = findRows(rows, words.value)
  const go = (to: number) => {
    if (!found.length) return
    at.value = (to + found.length) % found.length
    show(found[at.value]!)
  }
  return (
    <form
      class="find-bar row"
      role="search"
      onSubmit={event => {
        event.preventDefault()
        go(at.value + 1)
      }}
      onKeyDown={event => event.key === 'Escape' && close()}
    >
      <input
        ref={box}
        class="input grow"
        type="search"
        aria-label="Find in this conversation"
        value={words.value}
        onInput={event => {
          words.value = event.currentTarget.value
          at.value = -1
        }}
      />
      <span class="small quiet" role="status">
        {words.value && `${countText(found.length)} found${earlier > 0 ? ' so far' : ''}`}
      </span>
      <button class="button" type="button" onClick={() => go(at.value - 1)}>
        Previous
      </button>
      <button class="button">Next</button>
      <button class="button plainly" type="button" onClick={close}>
        Close
      </button>
    </form>
  )
}
