import { useSignal } from '@preact/signals'
import type { ActionState } from '../action.js'
import { useAction } from '../action.js'
import { ActionButton } from '../action-button.js'
import { FaultLine } from '../page.js'

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
