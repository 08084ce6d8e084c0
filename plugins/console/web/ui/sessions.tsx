import type { ComponentChildren, FunctionComponent } from 'preact'
import { useRef } from 'preact/hooks'
import type { QueryState } from '../data/queries.js'
import { fragmentOf } from '../data/route.js'
import { person } from '../data/session/session.js'
import { reaches } from '../pages/registry.js'
import { FormButton } from './dialog.js'
import { visibleName } from './format.js'
import { Icon } from './icons.js'
import { Bones, Loaded, PageFrame } from './page.js'

/** What is known of something that runs on the machine and is looked into. */
interface RunningSession {
  readonly name: string
}

/** The words and parts of a page of running things. */
export interface SessionWords<S extends RunningSession> {
  /** The first part of the address. */
  readonly page: string
  readonly heading: string
  /** What leads back to the list. */
  readonly back: string
  /** The button that opens a new one. */
  readonly open: string
  readonly empty: string
  /** Shown in place of one that is gone. */
  readonly gone: string
  readonly frameClass?: string
  readonly titleOf: (session: S) => string
  /** Whether one can be looked into. */
  readonly isOpen: (session: S) => boolean
  readonly Row: FunctionComponent<{ session: S }>
  readonly End: FunctionComponent<{ session: S }>
  readonly View: FunctionComponent<{ session: S; leave: () => void }>
  readonly form: (close: () => void) => ComponentChildren
}

interface OneProps<S extends RunningSession> {
  readonly words: SessionWords<S>
  readonly name: string
  readonly sessions: readonly S[]
}

const One = <S extends RunningSession>({ words, name, sessions }: OneProps<S>) => {
  const session = sessions.find(one => one.name === name)
  const back = useRef<HTMLAnchorElement>(null)
  const { End, View } = words
  return (
    <>
      <header class="page-head">
        <a ref={back} class="button plainly back" href={fragmentOf(words.page)} aria-label={words.back}>
          <Icon name="back" />
        </a>
        <h1 class="grow one-line" dir="auto">
          {session ? words.titleOf(session) : visibleName(name)}
        </h1>
        {session && words.isOpen(session) && <End session={session} />}
      </header>
      <main class={`page-fill ${words.frameClass ?? ''}`}>
        {session && words.isOpen(session) ? (
          <View key={name} session={session} leave={() => back.current?.focus()} />
        ) : (
          <p class="empty quiet">{words.gone}</p>
        )}
      </main>
    </>
  )
}

interface RunningSessionsProps<S extends RunningSession> {
  readonly words: SessionWords<S>
  readonly name: string | undefined
  readonly list: QueryState<{ readonly sessions: readonly S[] }>
}

/** Running things of the machine: which there are, and one of them to look into and use. */
export const RunningSessions = <S extends RunningSession>({ words, name, list }: RunningSessionsProps<S>) => {
  const maintains = reaches(person.value?.role, 'maintainer')
  const { Row } = words
  if (name !== undefined && maintains)
    return list.data ? <One words={words} name={name} sessions={list.data.sessions} /> : <Bones />
  return (
    <PageFrame title={words.heading} tools={maintains && <FormButton label={words.open} primary form={words.form} />}>
      <Loaded query={list}>
        {({ sessions }) =>
          sessions.length === 0 ? (
            <p class="quiet">{words.empty}</p>
          ) : (
            <ul class="items">
              {sessions.map(session => (
                <Row key={session.name} session={session} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
