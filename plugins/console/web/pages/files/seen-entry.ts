import { useSignal } from '@preact/signals'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import type { QueryState } from '../../data/queries.js'
import { useRead } from '../../ui/read.js'

/** What is at a path, as a form shows it. */
export interface ShownEntry {
  readonly path: string
  readonly stamp: string
  readonly files: number
  readonly bytes: number
}

/** What a form looked at, and an action that names it: refused, because it changed since, the form looks again. */
export const useSeenEntry = (
  path: string | undefined,
): {
  readonly seen: QueryState<ShownEntry | undefined>
  readonly onSeen: (work: (expect: { readonly expect?: string }) => Promise<unknown>) => Promise<void>
} => {
  const looks = useSignal(0)
  const seen = useRead(`${looks.value} ${path ?? ''}`, async () => {
    if (path === undefined) return undefined
    const { stamp = '', files = 0, bytes = 0 } = await askDaemon('DELETE /workspace/entry', { path, mode: 'check' })
    return { path, stamp, files, bytes }
  })
  return {
    seen,
    onSeen: async work => {
      try {
        await work(seen.data ? { expect: seen.data.stamp } : {})
      } catch (error) {
        if (error instanceof Refusal && error.reason === 'conflict') looks.value += 1
        throw error
      }
    },
  }
}
