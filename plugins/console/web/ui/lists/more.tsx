import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ActionState } from '../action.js'
import { useAction } from '../action.js'
import { ActionButton } from '../action-button.js'
import { FaultLine } from '../page.js'
import { useQuery } from '../query.js'

/** A page of a list: its rows, and where the next one begins, if there is one. */
export interface ListPage<T, C> {
  readonly rows: readonly T[]
  readonly next: C | undefined
}

interface FurtherRows<T> {
  readonly rows: readonly T[]
  readonly action: ActionState
  /** Reads the next page; undefined: there is none. */
  readonly more: (() => Promise<void>) | undefined
}

/** The rows of a list after its first page, which a person asks for; they are dropped when the key changes. */
export const useFurther = <T, C>(
  key: unknown,
  begin: C | undefined,
  read: (from: C) => Promise<ListPage<T, C>>,
): FurtherRows<T> => {
  const kept = useSignal<(ListPage<T, C> & { readonly key: unknown }) | undefined>(undefined)
  const action = useAction()
  const own = kept.value?.key === key ? kept.value : undefined
  const rows = own?.rows ?? []
  const from = own ? own.next : begin
  return {
    rows,
    action,
    more:
      from === undefined
        ? undefined
        : async () => {
            const page = await read(from)
            kept.value = { key, rows: [...rows, ...page.rows], next: page.next }
          },
  }
}

/**
 * A list that is read a page at a time and stays current: what a person went on to stays shown when it is read again.
 * The data of the query is the first page, with the rows of all of them.
 */
export const usePages = <T, C, P extends ListPage<T, C>>(
  key: string,
  domains: readonly string[],
  read: (from: C | undefined) => Promise<P & ListPage<T, C>>,
) => {
  const known = useRef({ key, pages: 1 })
  if (known.current.key !== key) known.current = { key, pages: 1 }
  const query = useQuery(key, domains, async () => {
    const first = await read(undefined)
    const rows = [...first.rows]
    let { next } = first
    // A page may be added meanwhile.
    for (let page = 1; page < known.current.pages && next !== undefined; page++) {
      const further = await read(next)
      rows.push(...further.rows)
      next = further.next
    }
    return { ...first, rows, next }
  })
  const older = useFurther<T, C>(query.data, query.data?.next, async from => {
    const page = await read(from)
    // What is new at the beginning moves rows beyond the last page.
    known.current.pages += page.next === undefined ? 2 : 1
    return page
  })
  return { query, older, rows: [...(query.data?.rows ?? []), ...older.rows] }
}

/** Below a list: a button that reads its next page, and why that failed. */
export const MoreRow = ({ label, of: { action, more } }: { label: string; of: Omit<FurtherRows<never>, 'rows'> }) => (
  <>
    {more && (
      <div class="more-row">
        <ActionButton action={action} work={more}>
          {label}
        </ActionButton>
      </div>
    )}
    <FaultLine fault={action.fault} />
  </>
)
