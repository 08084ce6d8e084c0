import { useSignal } from '@preact/signals'
import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { fleet, hello } from '../../data/live.js'
import { sectionsOf, type FleetSection } from '../../data/roster.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { lazyView } from '../../ui/lazy.js'
import { VirtualList } from '../../ui/lists/list.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { useCommands } from '../../ui/commands.js'
import { focusedRow } from '../../ui/lists/rows.js'
import { useArchiving } from './archiving.js'
import { FleetRow } from './fleet-row.js'
import { DataAge } from '../../ui/data-age.js'
import { FaultLine } from '../../ui/page.js'
import { SearchField } from '../../ui/search-field.js'

const BulkBar = lazyView(async () => (await import('./bulk-bar.js')).BulkBar)

const HEADINGS: { readonly [section in FleetSection]: string } = {
  needs: 'Needs you',
  working: 'Working',
  ready: 'Ready to land',
  done: 'Done',
}

type FleetItem =
  | { readonly kind: 'heading'; readonly section: FleetSection; readonly count: number }
  | { readonly kind: 'card'; readonly card: AgentCard; readonly snippet?: string | undefined }

const itemsOf = (cards: Iterable<AgentCard>): FleetItem[] =>
  [...sectionsOf(cards)].flatMap(([section, found]): FleetItem[] =>
    found.length
      ? [{ kind: 'heading', section, count: found.length }, ...found.map(card => ({ kind: 'card', card }) as const)]
      : [],
  )

const keyOf = (item: FleetItem): string => (item.kind === 'heading' ? item.section : item.card.id)
const estimate = (item: FleetItem): number => (item.kind === 'heading' ? 44 : 64)

const Empty = () => (
  <div class="empty stack">
    <h2>No conversations yet</h2>
    <p class="quiet">
      Conversations with agents appear here: those that need you first, then those that work, those whose changes are
      ready to land, and those that are done.
    </p>
    <div>
      <a class="button primary" href={fragmentOf('new')}>
        Start a conversation
      </a>
    </div>
  </div>
)

const Bones = () => (
  <div class="bones" aria-hidden="true">
    {[1, 2, 3, 4].map(one => (
      <div key={one} class="bone" />
    ))}
  </div>
)

const useFound = (query: string, archived: boolean) => {
  const asked = query.trim().length >= 2 ? query.trim() : ''
  const found = useQuery(`search ${asked}`, [], async () =>
    asked ? askDaemon('GET /agents/search', { query: asked }) : undefined,
  )
  const away = useQuery(`archived ${archived}`, [], async () =>
    archived || asked ? askDaemon('GET /agents/archived', { limit: 500 }) : undefined,
  )
  const known = new Map([...(away.data?.agents ?? []).map(card => [card.id, card] as const), ...fleet.value.cards])
  if (!asked) return archived ? (away.data?.agents ?? []).map((card): FleetItem => ({ kind: 'card', card })) : undefined
  return (found.data?.matches ?? []).flatMap(({ id, snippet }): FleetItem[] => {
    const card = known.get(id)
    return card ? [{ kind: 'card', card, snippet: snippet?.text }] : []
  })
}

/** Every conversation, by what a person has to do about it. */
export const FleetPage = (_: PageProps) => {
  const query = useSignal('')
  const archived = useSignal(false)
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const action = useAction()
  const archiving = useArchiving(action, () => {})
  const found = useFound(query.value, archived.value)
  const items = found ?? itemsOf(fleet.value.cards.values())
  const mayWork = reaches(person.value?.role, 'collaborator')
  const toggle = (id: string) => {
    const next = new Set(selected.value)
    if (!next.delete(id)) next.add(id)
    selected.value = next
  }
  useCommands([
    ...(mayWork
      ? [
          {
            ...{ id: 'archive', label: 'Archive the row that has the focus', group: 'Conversation', keys: 'e' },
            keysOnly: true as const,
            run: () => {
              const id = focusedRow()
              const card = id === undefined ? undefined : fleet.value.cards.get(id)
              if (card) archiving.run([card])
            },
          },
          {
            ...{ id: 'select', label: 'Select the row that has the focus', group: 'Conversation', keys: 's' },
            keysOnly: true as const,
            run: () => {
              const id = focusedRow()
              if (id !== undefined) toggle(id)
            },
          },
        ]
      : []),
  ])
  return (
    <>
      <header class="page-head">
        <h1 class="grow">{archived.value ? 'Archive' : 'Fleet'}</h1>
        <SearchField
          main
          class="fleet-search"
          label="Search conversations"
          placeholder="Search titles and words"
          value={query}
        />
        <button
          class="button"
          type="button"
          aria-pressed={archived.value}
          onClick={() => {
            archived.value = !archived.value
            selected.value = new Set()
          }}
        >
          Archive
        </button>
        {mayWork && (
          <a class="button primary" href={fragmentOf('new')} data-key="new">
            New conversation
          </a>
        )}
      </header>
      <main class="fleet">
        {mayWork && selected.value.size > 0 && (
          <BulkBar
            ids={[...selected.value]}
            archived={archived.value}
            action={action}
            done={() => {
              selected.value = new Set()
            }}
          />
        )}
        <FaultLine fault={action.fault} />
        {archiving.question}
        <DataAge />
        {!hello.value ? (
          <Bones />
        ) : items.length === 0 ? (
          query.value.trim().length >= 2 ? (
            <p class="empty quiet">Nothing was found.</p>
          ) : archived.value ? (
            <p class="empty quiet">Conversations that you archive appear here.</p>
          ) : (
            <Empty />
          )
        ) : (
          <VirtualList
            label="Conversations"
            items={items}
            keyOf={keyOf}
            estimate={estimate}
            render={item =>
              item.kind === 'heading' ? (
                <h2 class="fleet-heading">
                  {HEADINGS[item.section]} <span class="quiet">{item.count}</span>
                </h2>
              ) : (
                <FleetRow
                  card={item.card}
                  snippet={item.snippet}
                  selected={selected.value.has(item.card.id)}
                  toggle={mayWork ? toggle : undefined}
                />
              )
            }
          />
        )}
      </main>
    </>
  )
}
