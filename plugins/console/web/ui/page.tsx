import type { ComponentChildren, RefObject } from 'preact'
import { faultSentence } from '../data/api.js'
import { refetch, type QueryState } from '../data/queries.js'
import { fragmentOf } from '../data/route.js'
import { DataAge } from './data-age.js'

interface PageFrameProps {
  readonly title: string
  /** Before the heading: the way back. */
  readonly before?: ComponentChildren
  /** Beside the heading. */
  readonly tools?: ComponentChildren
  /** The page has its own scrolling list. */
  readonly fills?: boolean
  /** Refers to what scrolls. */
  readonly body?: RefObject<HTMLElement | null>
  readonly children: ComponentChildren
}

/** A page with its heading. */
export const PageFrame = ({ title, before, tools, fills = false, body, children }: PageFrameProps) => (
  <>
    <header class="page-head">
      {before}
      <h1 class="grow">{title}</h1>
      {tools}
    </header>
    {fills ? (
      <main class="page-fill">{children}</main>
    ) : (
      <main ref={body ?? null} class="page-body">
        <div class="sections">{children}</div>
      </main>
    )}
  </>
)

/** Placeholders while content is loading. */
export const Bones = () => (
  <div class="bones" aria-hidden="true">
    {[1, 2, 3, 4].map(one => (
      <div key={one} class="bone" />
    ))}
  </div>
)

/** The placeholder of words in a line of text. */
export const BoneWords = () => <span class="bone words" aria-hidden="true" />

/** The reason for a failure, next to the control that started it. */
export const FaultLine = ({ fault }: { fault: string }) =>
  fault ? (
    <p class="notice bad" role="alert">
      {fault}
    </p>
  ) : null

interface LoadedProps<T> {
  readonly query: QueryState<T>
  readonly children: (data: T) => ComponentChildren
}

/** Renders an answer of the daemon: a placeholder while loading, the reason of a failure, otherwise the content. */
export const Loaded = <T,>({ query, children }: LoadedProps<T>) => {
  const fault = query.error !== undefined && (
    <div class="notice bad row apart" role="alert">
      <span>
        {faultSentence(query.error)}
        {query.data !== undefined && ' What you see may be out of date.'}
      </span>
      <button class="button" type="button" onClick={() => refetch('all')}>
        Try again
      </button>
    </div>
  )
  if (query.data === undefined) return fault || <Bones />
  return (
    <>
      {fault}
      <DataAge at={query.at} />
      {children(query.data)}
    </>
  )
}

interface TabsProps {
  readonly page: string
  readonly label: string
  readonly current: string
  readonly tabs: readonly (readonly [name: string, label: string])[]
}

/** Links to the parts of a page. */
export const Tabs = ({ page, label, current, tabs }: TabsProps) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(([name, text]) => (
      <a key={name} href={fragmentOf(page, name)} aria-current={name === current ? 'page' : undefined}>
        {text}
      </a>
    ))}
  </nav>
)

/** A state as a word with its colour. */
export type ToneWord = readonly [tone: 'good' | 'warn' | 'bad' | 'busy' | '', word: string]

interface ItemProps {
  readonly title: ComponentChildren
  /** Its status, beside the title. */
  readonly state?: ToneWord | undefined
  readonly detail?: ComponentChildren
  readonly facts?: ComponentChildren
  readonly children?: ComponentChildren
}

/** One entry of a list: title, details and actions. */
export const Item = ({ title, state, detail, facts, children }: ItemProps) => (
  <li class="item" tabIndex={-1} data-row="item">
    <div class="item-main">
      <div class="item-title" dir="auto">
        {title}
        {state && (
          <>
            {' '}
            <span class={`tag ${state[0]}`}>{state[1]}</span>
          </>
        )}
      </div>
      {detail && <div class="quiet small">{detail}</div>}
    </div>
    {facts && <div class="item-facts">{facts}</div>}
    {children && <div class="row item-actions">{children}</div>}
  </li>
)
