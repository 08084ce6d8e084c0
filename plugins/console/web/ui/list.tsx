import { useSignal } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks'

/** The distance from the end that counts as the end, in pixels. */
const NEAR = 32
const UP_KEYS = new Set(['ArrowUp', 'PageUp', 'Home'])

/** The methods of a list for its page. */
export interface ListControl {
  toEnd(): void
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

/** A list of which only the items in view are elements; it owns its scrolling. */
export const VirtualList = <T,>(props: VirtualListProps<T>) => {
  const { items, keyOf, estimate, render, label, followsEnd = false, onStart, control } = props
  const box = useRef<HTMLDivElement>(null)
  const current = useRef(props)
  current.current = props
  const [, update] = useReducer((times: number) => times + 1, 0)
  const following = useRef(followsEnd)
  const missed = useSignal(0)
  const before = useRef(items.length)
  const touchY = useRef(0)

  const options = {
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (index: number) => estimate(items[index]!),
    getItemKey: (index: number) => keyOf(items[index]!),
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => update(undefined),
  }
  const list = useMemo(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options), [])
  list.setOptions({ ...list.options, ...options })

  const atEnd = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    return scrollHeight - scrollTop - clientHeight < NEAR
  }
  const toEnd = () => {
    following.current = true
    missed.value = 0
    if (box.current) box.current.scrollTop = box.current.scrollHeight
  }
  const stop = () => {
    following.current = false
  }
  /** Called after the person scrolled: following starts at the end. */
  const moved = () =>
    requestAnimationFrame(() => {
      if (atEnd()) {
        following.current = followsEnd
        missed.value = 0
      }
      if ((box.current?.scrollTop ?? 1e9) < 400) current.current.onStart?.()
    })

  useLayoutEffect(() => list._didMount(), [])
  useLayoutEffect(() => list._willUpdate())
  useLayoutEffect(() => {
    if (!followsEnd) return
    if (following.current && box.current) box.current.scrollTop = box.current.scrollHeight
    else if (items.length > before.current) missed.value += items.length - before.current
    before.current = items.length
  })
  useEffect(() => {
    control?.({
      toEnd,
      toIndex: index => {
        stop()
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
        onWheel={event => {
          if (event.deltaY < 0) stop()
          moved()
        }}
        onTouchStart={event => {
          touchY.current = event.touches[0]?.clientY ?? 0
        }}
        onTouchMove={event => {
          if ((event.touches[0]?.clientY ?? 0) > touchY.current + 4) stop()
          moved()
        }}
        onTouchEnd={moved}
        onPointerDown={event => {
          // The scroll bar: the pointer is on the box and not on an item.
          if (event.target === box.current) stop()
        }}
        onPointerUp={moved}
        onKeyDown={event => {
          if (UP_KEYS.has(event.key)) stop()
          moved()
        }}
        onScrollEnd={() => (box.current?.scrollTop ?? 1e9) < 400 && onStart?.()}
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
        <button class="button list-new" type="button" onClick={toEnd}>
          {missed.value} new
        </button>
      )}
    </>
  )
}
