import { useSignal } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks'
import { useFollowing } from './following.js'

/** The methods of a list for its page. */
export interface ListControl {
  toIndex(index: number): void
  /** The first item that is in view. */
  firstShown(): number
}

export interface VirtualListProps<T> {
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  /** The height that an item has before it is measured. */
  readonly estimate: (item: T) => number
  readonly render: (item: T, index: number) => ComponentChildren
  readonly label: string
  /** Stays at the end while items are added, until the person scrolls up. */
  readonly followsEnd?: boolean
  /** Called when the beginning is near. */
  readonly onStart?: () => void
  readonly control?: (control: ListControl) => void
  /** Shown below the last item. */
  readonly class?: string
}

/** The number of items after the one that was the last. */
const addedAfter = <T,>(items: readonly T[], keyOf: (item: T) => string, last: T | undefined): number => {
  if (last === undefined) return items.length
  const key = keyOf(last)
  const at = items.findLastIndex(item => keyOf(item) === key)
  return at < 0 ? 0 : items.length - 1 - at
}

/** A list of which only the items in view are elements; it owns its scrolling. */
export const VirtualList = <T,>(props: VirtualListProps<T>) => {
  const { items, keyOf, estimate, render, label, followsEnd = false, control } = props
  const box = useRef<HTMLDivElement>(null)
  const current = useRef(props)
  current.current = props
  const [, update] = useReducer((times: number) => times + 1, 0)
  const missed = useSignal(0)
  const last = useRef(items.at(-1))
  const options = {
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (index: number) => estimate(items[index]!),
    getItemKey: (index: number) => keyOf(items[index]!),
    overscan: 6,
    // What is read stays where it is while earlier rows are added.
    anchorTo: followsEnd ? ('end' as const) : ('start' as const),
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => update(undefined),
  }
  const list = useMemo(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options), [])
  list.setOptions({ ...list.options, ...options })

  const following = useFollowing(box, () => current.current.followsEnd === true, {
    onStart: () => current.current.onStart?.(),
    onEnd: () => {
      missed.value = 0
    },
  })
  useLayoutEffect(() => list._didMount(), [])
  useLayoutEffect(() => list._willUpdate())
  const first = items.length ? keyOf(items[0]!) : ''
  const before = useRef({ key: first, top: 0 })
  useLayoutEffect(() => {
    const { offsetTop: top = 0 } = box.current ?? {}
    // What stood above the list, to load what is earlier, may be gone with the last of it.
    if (box.current && !following.on && first !== before.current.key) box.current.scrollTop += top - before.current.top
    before.current = { key: first, top }
  })
  useLayoutEffect(() => {
    if (!followsEnd) return
    if (following.on && box.current) box.current.scrollTop = box.current.scrollHeight
    else missed.value += addedAfter(items, keyOf, last.current)
    last.current = items.at(-1)
  })
  useEffect(() => {
    control?.({
      toIndex: index => {
        following.stop()
        list.scrollToIndex(index, { align: 'center' })
      },
      firstShown: () => list.getVirtualItemForOffset(box.current?.scrollTop ?? 0)?.index ?? 0,
    })
  }, [])

  return (
    <>
      <div
        ref={box}
        class={`list-box ${props.class ?? ''}`}
        role="list"
        aria-label={label}
        // A region that scrolls is reached with the keyboard.
        tabIndex={0}
        onWheel={following.onWheel}
        onTouchStart={following.onTouchStart}
        onTouchMove={following.onTouchMove}
        onPointerDown={following.onPointerDown}
        onKeyDown={following.onKeyDown}
        onScroll={following.onScroll}
        onScrollEnd={following.onScrollEnd}
      >
        <div class="list-inner" role="presentation" style={{ blockSize: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map(({ index, key, start }) => (
            <div
              key={key}
              ref={element => {
                list.measureElement(element)
              }}
              data-index={index}
              class="list-item"
              role="listitem"
              aria-posinset={index + 1}
              aria-setsize={items.length}
              style={{ transform: `translateY(${start}px)` }}
            >
              {items[index] !== undefined && render(items[index], index)}
            </div>
          ))}
        </div>
      </div>
      {missed.value > 0 && (
        <button class="button list-new" type="button" onClick={() => following.start()}>
          {missed.value} new
        </button>
      )}
    </>
  )
}
