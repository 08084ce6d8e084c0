import { computed, signal } from '@preact/signals-core'
import type { ExtensionRecord } from '../../../../extensions/contract.js'
import { askDaemon } from '../api.js'
import { served } from '../live.js'
import { watchQuery } from '../queries.js'
import { signIn } from '../session/session.js'
import { ignored } from '../../../../../sdk/ignored.js'

/** An extension whose pages the console shows. */
export type ShownExtension = ExtensionRecord & Required<Pick<ExtensionRecord, 'pageCalls'>>

const listed = signal<readonly ExtensionRecord[]>([])

/** The extensions that have a page which may be shown. */
export const shownExtensions = computed(() =>
  listed.value.filter((record): record is ShownExtension => record.pageCalls !== undefined),
)

/** Counts that pages show at their views, by extension and view. */
export const viewBadges = signal<ReadonlyMap<string, number>>(new Map())

/** Shows a count at a view; 0 shows none. */
export const setViewBadge = (id: string, view: string, count: number): void => {
  const key = `${id} ${view}`
  if ((viewBadges.value.get(key) ?? 0) === count) return
  viewBadges.value = new Map(
    [...viewBadges.value].filter(([one]) => one !== key).concat(count > 0 ? [[key, count]] : []),
  )
}

/** A command that was chosen and waits for the page of its extension. */
export const chosenCommand = signal<{ readonly id: string; readonly command: string } | undefined>(undefined)

/** The name of an extension as people know it. */
export const extensionName = ({ id, manifest }: Pick<ExtensionRecord, 'id' | 'manifest'>): string =>
  manifest.name ?? id.slice(id.indexOf('.') + 1)

/** Follows which extensions there are, while a person is signed in and the daemon serves them. */
export const watchExtensions = (): void => {
  let stop: (() => void) | undefined
  const watched = computed(() => signIn.value.kind === 'in' && served.value.has('extensions.list'))
  watched.subscribe(wanted => {
    stop?.()
    stop = undefined
    if (!wanted) {
      listed.value = []
      return
    }
    const query = watchQuery('extensions', ['extensions'], () => askDaemon('GET /extensions'))
    const unsubscribe = query.state.subscribe(({ data }) => {
      if (data) listed.value = data.extensions
    })
    stop = () => {
      unsubscribe()
      query.stop()
    }
  })
}

/** How often pages used the entries of their manifests since the last report. */
const used = new Map<string, Map<string, number>>()
const REPORT_MS = 30_000
let timer: ReturnType<typeof setTimeout> | undefined

/** Counts one use of an entry; the counts are sent after a while. */
export const countUse = (id: string, entry: string): void => {
  const entries = used.get(id) ?? new Map<string, number>()
  used.set(id, entries.set(entry, (entries.get(entry) ?? 0) + 1))
  timer ??= setTimeout(() => void reportUses(), REPORT_MS)
}

/** Sends the counts; those that cannot be sent are lost, because they only help to judge what is declared. */
export const reportUses = async (): Promise<void> => {
  clearTimeout(timer)
  timer = undefined
  if (used.size === 0) return
  const reports = Object.fromEntries([...used].map(([id, entries]) => [id, Object.fromEntries(entries)]))
  used.clear()
  await askDaemon('POST /extensions/usage', { reports }).catch(ignored('only the count is lost'))
}
