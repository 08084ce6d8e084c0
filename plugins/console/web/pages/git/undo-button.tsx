import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { accepted } from '../../data/git-answers.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField } from '../../ui/fields.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { Bones, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const NONE = {
  'mid-operation': 'An operation is in progress: abort it instead.',
  detached: 'No branch is checked out.',
  'no-history': 'Git keeps no log of this branch.',
  created: 'This is where the branch began.',
} as const

const UndoForm = ({ repo, close }: { repo: string; close: () => void }) => {
  const hard = useSignal(false)
  const query = useQuery(`undo ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/undo', { repo }))
  const action = query.data?.action
  return (
    <DialogForm
      title="Undo the last move of the branch"
      verb="Undo"
      danger
      close={close}
      ready={action !== undefined}
      work={async () =>
        accepted(
          await askDaemon('POST /git/{repo}/undo', {
            ...{ repo, previousSha: action!.previousSha, expectHead: action!.sha },
            ...(hard.value && { discardChanges: true }),
          }),
        )
      }
    >
      <Loaded query={query}>
        {({ none }) =>
          action ? (
            <>
              <p>
                {visibleText(action.description)}: {visibleName(action.branch)} goes from {action.sha.slice(0, 8)} back
                to {action.previousSha.slice(0, 8)}. Undoing again does it again.
              </p>
              {action.commits.length > 0 && (
                <ul>
                  {action.commits.map(({ sha, short, subject }) => (
                    <li key={sha}>
                      <span class="mono">{short}</span> {visibleText(subject)}
                    </li>
                  ))}
                </ul>
              )}
              {action.pushed && <p class="notice warn">Some of these commits are on the remote.</p>}
              {action.changesWorkingTree && (
                <CheckField label={`Files go back too: ${action.files.length} change`} value={hard} />
              )}
              {hard.value && action.wouldLose.length > 0 && (
                <p class="notice bad">
                  Uncommitted work in these files is lost, but for the saved point:{' '}
                  {action.wouldLose.map(visibleName).join(', ')}
                </p>
              )}
            </>
          ) : (
            <p>{none ? NONE[none] : <Bones />}</p>
          )
        }
      </Loaded>
    </DialogForm>
  )
}

/** Shows what an undo would take back, and does it when the person says so. */
export const UndoButton = ({ repo }: { repo: string }) => (
  <FormButton label="Undo …" about="the last commit" form={close => <UndoForm repo={repo} close={close} />} />
)
