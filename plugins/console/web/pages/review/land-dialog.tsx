import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { AgentChanges, ConflictFile, LandPath, LandResult } from '../../../../agents/contract.js'
import { askDaemon, askUntilAnswered } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { tipsOf } from '../../data/tips.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { Dialog } from '../../ui/dialog.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { RunButton } from '../new/run-button.js'
import { acceptanceRun } from './acceptance-run.js'
import { conflictWords } from './conflict-words.js'

interface LandDialogProps {
  readonly id: string
  readonly changes: AgentChanges
  /** Only these files; empty: all that is outstanding. */
  readonly only: LandPath[]
  readonly close: (result?: LandResult) => void
}

interface ConflictsProps {
  readonly id: string
  readonly conflicts: readonly ConflictFile[]
  readonly close: () => void
}

const Conflicts = ({ id, conflicts, close }: ConflictsProps) => (
  <div class="notice warn">
    <p>These files do not land as they are. Open one to choose a side, or let the agent resolve them:</p>
    <ul>
      {conflicts.map(({ repo, path, reason, inTheWay }) => (
        <li key={`${repo}\n${path}`}>
          <a class="mono" href={fragmentOf('c', id, 'changes', repo, path)} onClick={close}>
            {visibleName(path)}
          </a>{' '}
          <span class="quiet">{conflictWords({ reason, ...(inTheWay && { inTheWay }) })}</span>
        </li>
      ))}
    </ul>
  </div>
)

/** Shows what would land without writing anything, and lands it after confirmation. */
export const LandDialog = ({ id, changes, only, close }: LandDialogProps) => {
  // The tips that the person saw when they opened it: work that comes behind the dialog is refused.
  const { current: expect } = useRef(tipsOf(changes))
  const found = useSignal<readonly ConflictFile[] | undefined>(undefined)
  const measuring = useAction()
  const action = useAction()
  const unanswered = useRef(new UnansweredMessage())
  const files = only.length || changes.repos.flatMap(repo => repo.changes.filter(({ landed }) => !landed)).length
  const some = only.length ? { only } : {}
  const measure = async () => {
    const { files: all } = await askDaemon('GET /agents/{id}/conflicts', { id })
    const places = new Set(only.map(({ repo, path }) => `${repo}\n${path}`))
    found.value = all.filter(({ repo, path }) => places.size === 0 || places.has(`${repo}\n${path}`))
  }
  useEffect(() => void measuring.run(measure), [])
  const conflicts = found.value ?? []
  const land = async (mode: 'check' | 'merge') => {
    const result = await askDaemon('POST /agents/{id}/land', { id, mode, expect, ...some })
    if (result.landed || !result.conflicts?.length) return close(result)
    await measure()
  }
  const checked = async () => acceptanceRun((await askDaemon('GET /agents/{id}/transcript', { id })).messages, expect)
  const resolve = async () => {
    const prompt = `Bring your work up to date with the main line and resolve the conflicts in: ${conflicts
      .map(({ path }) => visibleName(path))
      .join(', ')}`
    await askUntilAnswered('POST /agent', {
      ...{ conversationId: id, errand: 'land-conflict', prompt, messageId: unanswered.current.idFor(prompt) },
    })
    unanswered.current.settle()
    close()
  }
  return (
    <Dialog title={`Land ${countText(files)} ${files === 1 ? 'file' : 'files'}`} close={() => close()}>
      <p>The changes go into the workspace as uncommitted changes. Nothing is committed or pushed.</p>
      {!found.value && !measuring.fault && <p class="quiet">Checking what would land …</p>}
      {found.value && conflicts.length === 0 && <p class="plus">Everything fits.</p>}
      {conflicts.length > 0 && <Conflicts id={id} conflicts={conflicts} close={() => close()} />}
      <FaultLine fault={action.fault || measuring.fault} />
      <div class="card-actions">
        <ActionButton
          action={action}
          class="primary"
          disabled={!found.value || conflicts.length > 0}
          work={() => land('check')}
        >
          Land
        </ActionButton>
        {conflicts.length > 0 && (
          <>
            <ActionButton action={action} work={() => land('merge')}>
              Land with conflict markers
            </ActionButton>
            <ActionButton action={action} work={resolve}>
              Let the agent resolve
            </ActionButton>
          </>
        )}
        <RunButton label="Have it checked" asked={checked} />
        <button class="button apart-button" type="button" onClick={() => close()}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}
