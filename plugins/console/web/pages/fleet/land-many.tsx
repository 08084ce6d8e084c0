import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { AgentChanges } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { tipsOf } from '../../data/tips.js'
import { useAction } from '../../ui/action.js'
import { conversationTitle } from './conversation-title.js'
import { DialogForm } from '../../ui/dialog.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { throwFailures } from './archive.js'

interface LandManyProps {
  readonly ids: readonly string[]
  readonly close: () => void
  readonly done: () => void
}

/** The names of files that are listed of a conversation. */
const LISTED = 10

const owedOf = ({ repos }: AgentChanges): string[] =>
  repos.flatMap(({ repo, changes }) =>
    changes.filter(({ landed }) => !landed).map(({ path }) => (repo === 'root' ? path : `${repo}/${path}`)),
  )

/** Lists what several conversations would land, and lands exactly that in the order of their selection. */
export const LandManyDialog = ({ ids, close, done }: LandManyProps) => {
  const seen = useSignal<readonly (readonly [id: string, changes: AgentChanges])[] | undefined>(undefined)
  const reading = useAction()
  const read = async () => {
    const found: [string, AgentChanges][] = []
    for (const id of ids) found.push([id, await askDaemon('GET /agents/{id}/diff', { id })])
    seen.value = found
  }
  useEffect(() => void reading.run(read), [])
  const land = async () => {
    const expect = Object.fromEntries((seen.value ?? []).map(([id, changes]) => [id, tipsOf(changes)]))
    const { results } = await askDaemon('POST /agents/land', { ids: [...ids], mode: 'check', expect })
    done()
    throwFailures(
      results.flatMap(({ id, error, result }) => {
        if (error) return [{ id, message: error.message }]
        return result?.landed ? [] : [{ id, message: 'it has conflicts; open it to choose' }]
      }),
    )
  }
  return (
    <DialogForm
      title={`Land ${countText(ids.length)} ${ids.length === 1 ? 'conversation' : 'conversations'}`}
      verb="Land"
      ready={seen.value !== undefined}
      close={close}
      work={land}
    >
      <p>The changes go into the workspace as uncommitted changes. Nothing is committed or pushed.</p>
      {!seen.value && !reading.fault && <p class="quiet">Reading what would land …</p>}
      <FaultLine fault={reading.fault} />
      <ul>
        {seen.value?.map(([id, changes]) => {
          const owed = owedOf(changes)
          return (
            <li key={id}>
              <a href={fragmentOf('c', id, 'changes')} onClick={close}>
                {conversationTitle(id)}
              </a>{' '}
              {owed.length === 0 && <span class="quiet">has nothing to land</span>}
              <span class="mono small">{owed.slice(0, LISTED).map(visibleName).join(', ')}</span>
              {owed.length > LISTED && <span class="quiet"> and {countText(owed.length - LISTED)} more</span>}
            </li>
          )
        })}
      </ul>
    </DialogForm>
  )
}
