import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ExpectedTips, LandChoice, Side } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { ConflictFrame } from '../../ui/code/conflict-frame.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { FaultLine } from '../../ui/page.js'
import { conflictWords } from './conflict-words.js'
import { TextBlock } from '../../ui/text-block.js'

const SIDES = [
  ['agent', 'Agent'],
  ['workspace', 'Workspace'],
  ['base', 'Before both'],
  ['merged', 'Merged'],
] as const

const SideText = ({ side }: { side: Side | undefined }) => {
  if (!side || side.missing) return <p class="empty quiet">The file is not there.</p>
  if (side.binary) return <p class="empty quiet">A binary file: its content is not shown.</p>
  return (
    <>
      <TextBlock class="code conflict-side" what="this side" text={side.text ?? ''} />
      {side.truncated && <p class="quiet small">Only the beginning is shown.</p>}
    </>
  )
}

interface ConflictPaneProps {
  readonly id: string
  readonly repo: string
  readonly path: string
  /** What the diff beside it showed. */
  readonly tips: ExpectedTips
  /** Called with the result of the choice. */
  readonly decided: (sentence: string) => void
}

/** A conflicting file: its three sides and their merge, and the choices. */
export const ConflictPane = ({ id, repo, path, tips, decided }: ConflictPaneProps) => {
  // The sides are read once, so a choice is about the work as it was then.
  const { current: expect } = useRef(tips)
  const shown = useSignal<(typeof SIDES)[number][0]>('agent')
  const action = useAction()
  const { data } = useQuery(`conflict ${id} ${repo} ${path}`, [], () =>
    askDaemon('GET /agents/{id}/conflicts', { id, repo, path }),
  )
  const file = data?.files[0]
  const choose = async (take: LandChoice['take']) => {
    const { landed } = await askDaemon('POST /agents/{id}/land', {
      ...{ id, expect, only: [{ repo, path }], choices: [{ repo, path, take }] },
    })
    decided(landed ? 'This file is decided.' : 'This file still does not land.')
  }
  return (
    <ConflictFrame
      path={path}
      reason={file && conflictWords(file)}
      sides={SIDES.filter(([side]) => file?.[side])}
      shown={shown}
    >
      {file && <SideText side={file[shown.value]} />}
      {reaches(person.value?.role, 'maintainer') && (
        <div class="card-actions">
          <ActionButton action={action} work={() => choose('agent')}>
            Take the agent's version
          </ActionButton>
          <ActionButton action={action} work={() => choose('workspace')}>
            Keep the workspace's version
          </ActionButton>
        </div>
      )}
      <FaultLine fault={action.fault} />
    </ConflictFrame>
  )
}
