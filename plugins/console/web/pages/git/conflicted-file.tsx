import { useSignal } from '@preact/signals'
import type { WorkingFileDiff } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { gitChanged } from '../../data/git-answers.js'
import { sha256 } from '../../data/hash.js'
import { fragmentOf } from '../../data/route.js'
import { withBothSides } from '../../run/conflict-markers.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { ComparedTexts } from '../../ui/code/compared-texts.js'
import { ConflictFrame } from '../../ui/code/conflict-frame.js'
import { DiffView } from '../../ui/code/diff-view.js'
import { FaultLine } from '../../ui/page.js'
import { TextBlock } from '../../ui/text-block.js'

const SIDES = [
  ['after', 'On disk'],
  ['ours', 'Ours'],
  ['theirs', 'Theirs'],
  ['base', 'Before both'],
  ['compared', 'Ours and theirs'],
] as const

interface ConflictedFileProps {
  readonly repo: string
  readonly path: string
  readonly sides: WorkingFileDiff | undefined
  readonly maintains: boolean
}

/** The path of a file from the root of the workspace. */
const inWorkspace = (repo: string, path: string): string => (repo === 'root' ? path : `${repo}/${path}`)

/** A file with conflicts: its sides, and what a person can choose. */
export const ConflictedFile = ({ repo, path, sides, maintains }: ConflictedFileProps) => {
  const shown = useSignal<(typeof SIDES)[number][0]>('after')
  const action = useAction()
  const both = sides?.after === undefined ? undefined : withBothSides(sides.after)
  const take = async (side: 'ours' | 'theirs') => {
    await askDaemon('POST /git/{repo}/stage', { repo, paths: [path], take: side })
    gitChanged()
  }
  const takeBoth = async () => {
    const baseHash = await sha256(new TextEncoder().encode(sides!.after))
    await askDaemon('PUT /git/{repo}/file', { repo, path, content: both!, baseHash })
    await askDaemon('POST /git/{repo}/stage', { repo, paths: [path] })
    gitChanged()
  }
  const resolved = async () => {
    await askDaemon('POST /git/{repo}/stage', { repo, paths: [path] })
    gitChanged()
  }
  const text = shown.value === 'compared' ? undefined : sides?.[shown.value]
  return (
    <ConflictFrame
      path={path}
      sides={SIDES.filter(([side]) =>
        side === 'compared' ? sides?.ours !== undefined && sides.theirs !== undefined : sides?.[side] !== undefined,
      )}
      shown={shown}
    >
      {sides?.binary ? (
        <div class="compared">
          <ComparedTexts
            path={path}
            sides={sides}
            error={undefined}
            source={{ source: 'working', repo, side: 'conflicted', path, status: 'conflicted' }}
          />
        </div>
      ) : shown.value === 'compared' ? (
        <div class="compared">
          <DiffView path={path} before={sides?.ours ?? ''} after={sides?.theirs ?? ''} split={false} />
        </div>
      ) : (
        text !== undefined && <TextBlock class="code scrolls" what="the file" text={text} />
      )}
      {maintains && (
        <div class="row">
          <ActionButton action={action} work={() => take('ours')}>
            Take ours
          </ActionButton>
          <ActionButton action={action} work={() => take('theirs')}>
            Take theirs
          </ActionButton>
          <ActionButton action={action} disabled={both === undefined} work={takeBoth}>
            Take both
          </ActionButton>
          <a class="button" href={fragmentOf('files', 'open', inWorkspace(repo, path))}>
            Edit
          </a>
          <ActionButton action={action} work={resolved}>
            Mark as resolved
          </ActionButton>
        </div>
      )}
      <FaultLine fault={action.fault} />
    </ConflictFrame>
  )
}
