import type { GitChange } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { gitChanged, seenStampsOf } from '../../data/git-answers.js'
import { sha256 } from '../../data/hash.js'
import { fragmentOf } from '../../data/route.js'
import { ComparedTexts } from '../../ui/code/compared-texts.js'
import { useAction } from '../../ui/action.js'
import { AskButton } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { ConflictedFile } from './conflicted-file.js'

/** The lists in which an uncommitted file appears. */
export type ChangeSide = 'conflicted' | 'staged' | 'unstaged'

interface WorkingFileProps {
  readonly repo: string
  readonly side: ChangeSide
  readonly change: GitChange
  readonly maintains: boolean
}

/** One uncommitted file: both sides, its parts staged one by one, discarded. */
export const WorkingFile = ({ repo, side, change, maintains }: WorkingFileProps) => {
  const { path, status } = change
  const action = useAction()
  const { data, error } = useQuery(`working ${repo} ${side} ${path}`, ['refs', 'files'], () =>
    askDaemon('GET /git/{repo}/file-diff', { repo, path, side }),
  )
  if (side === 'conflicted') return <ConflictedFile repo={repo} path={path} sides={data} maintains={maintains} />
  const { before, after } = data ?? {}
  const staged = side === 'staged' ? after : before
  // A file that comes or goes is staged whole.
  const byPart = maintains && before !== undefined && after !== undefined && staged !== undefined
  const take = (content: string) =>
    void action.run(async () => {
      const baseHash = await sha256(new TextEncoder().encode(staged))
      await askDaemon('POST /git/{repo}/stage', { repo, paths: [path], content, baseHash })
      gitChanged()
    })
  return (
    <div class="file-pane">
      <FaultLine fault={action.fault} />
      <ComparedTexts
        path={path}
        sides={data}
        error={error}
        source={{ source: 'working', repo, side, path, status }}
        hunks={
          byPart
            ? {
                label: side === 'unstaged' ? 'Stage this part' : 'Unstage this part',
                towards: side === 'unstaged' ? 'before' : 'after',
                take,
              }
            : undefined
        }
        tools={
          <>
            <a class="button" href={fragmentOf('git', repo, 'blame', path)}>
              Blame
            </a>
            {maintains && side === 'unstaged' && (
              <AskButton
                label="Discard"
                about={visibleName(path)}
                title={`Discard the changes of ${visibleName(path)}?`}
                work={async () => {
                  await askDaemon('POST /git/{repo}/discard', { repo, paths: [path], expect: seenStampsOf([change]) })
                  gitChanged()
                }}
              >
                <p>
                  The file goes back to the last commit; a new one is deleted. A saved point keeps what is there now.
                </p>
              </AskButton>
            )}
          </>
        }
      />
    </div>
  )
}
