import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { useQuery } from '../../ui/query.js'

const LANES = {
  shell: 'in a command',
  code: 'by a program',
  browser: 'in a browser',
} as const

/** The uses of stored values, newest first. */
export const SecretUses = () => {
  const newest = useQuery('secret uses', ['secrets'], () => askDaemon('GET /secrets/uses', { limit: 50 }))
  const older = useFurther('all', newest.data?.next, async before => {
    const page = await askDaemon('GET /secrets/uses', { limit: 50, before })
    return { rows: page.uses, next: page.next }
  })
  return (
    <section aria-labelledby="uses-heading">
      <h2 id="uses-heading">Who used them</h2>
      <Loaded query={newest}>
        {({ uses }) => {
          const first = new Set(uses.map(({ id }) => id))
          const all = [...uses, ...older.rows.filter(({ id }) => !first.has(id))]
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
      <MoreRow label="Show older uses" of={older} />
    </section>
  )
}
