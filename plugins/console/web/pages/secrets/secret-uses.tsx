import { useSignal } from '@preact/signals'
import type { SecretUse } from '../../../../secrets/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const LANES = {
  shell: 'in a command',
  code: 'in a program text',
  browser: 'in a browser',
  git: 'to a git server',
} as const

/** The uses of stored values, newest first. */
export const SecretUses = () => {
  const newest = useQuery('secret uses', ['secrets'], () => askDaemon('GET /secrets/uses', { limit: 50 }))
  const older = useSignal<{ readonly uses: readonly SecretUse[]; readonly next?: string } | undefined>(undefined)
  const action = useAction()
  const next = older.value ? older.value.next : newest.data?.next
  const more = () =>
    action.run(async () => {
      const page = await askDaemon('GET /secrets/uses', { limit: 50, before: next! })
      older.value = {
        uses: [...(older.peek()?.uses ?? []), ...page.uses].slice(-1_000),
        ...(page.next !== undefined && { next: page.next }),
      }
    })
  return (
    <section aria-labelledby="uses-heading">
      <h2 id="uses-heading">Who used them</h2>
      <Loaded query={newest}>
        {({ uses }) => {
          const first = new Set(uses.map(({ id }) => id))
          const all = [...uses, ...(older.value?.uses ?? []).filter(({ id }) => !first.has(id))]
          return all.length === 0 ? (
            <p class="quiet">Every use of a value appears here: when, what for, and by whom.</p>
          ) : (
            <ul class="items">
              {all.map(({ id, at, name, lane, detail, conversationId, by }) => (
                <Item
                  key={id}
                  title={<span class="mono">{visibleName(name)}</span>}
                  detail={
                    <>
                      {LANES[lane] ?? lane}: <span class="mono">{visibleName(detail)}</span> · by {visibleName(by)}{' '}
                      {conversationId && <a href={fragmentOf('c', conversationId)}>in a conversation</a>}
                    </>
                  }
                  facts={<time class="quiet small">{momentOf(at)}</time>}
                />
              ))}
            </ul>
          )
        }}
      </Loaded>
      <FaultLine fault={action.fault} />
      {next !== undefined && (
        <div>
          <button class="button" type="button" disabled={action.busy} onClick={() => void more()}>
            Show older uses
          </button>
        </div>
      )}
    </section>
  )
}
