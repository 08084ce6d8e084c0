import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { accepted, expectedHead, gitChanged } from '../../data/git-answers.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton } from '../../ui/dialog.js'
import { agoOf, spanText, visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

/** What a repository is halted in, and how to go on or back; nothing where it is in no operation. */
export const OperationNotice = ({ repo, maintains }: { repo: string; maintains: boolean }) => {
  const action = useAction()
  const said = useSignal('')
  const { data } = useQuery(`operation ${repo}`, ['refs', 'files'], () =>
    askDaemon('GET /git/{repo}/operation', { repo }),
  )
  if (!data) return null
  const { operation, step, total, subject, unmerged, canContinue, lock, held } = data
  const goOn = async (skip: boolean) => {
    const result = await askDaemon('POST /git/{repo}/continue', {
      repo,
      ...(skip && { skip }),
      ...expectedHead(data),
    })
    gitChanged()
    said.value = result.operation ? 'The next commit has conflicts too.' : ''
    if (!result.operation) accepted(result)
  }
  if (!operation && !lock && !held && !action.fault) return null
  return (
    <div class="banner operation" role="status">
      <div class="stack grow">
        {operation && (
          <p>
            In the middle of a {operation}
            {step !== undefined && total !== undefined && `, step ${step} of ${total}`}
            {subject && `: ${visibleName(subject)}`}. {unmerged > 0 ? `${unmerged} files have conflicts.` : said.value}
          </p>
        )}
        {held && (
          <p>
            {visibleName(held.by)} is at work here since {agoOf(held.since)}
            {held.queued > 0 && `, ${held.queued} wait`}.
          </p>
        )}
        {lock && (
          <p>
            Git&apos;s lock file {visibleName(lock.file)} is {spanText(lock.ageMs)} old
            {lock.command && `, held by ${visibleName(lock.command)}`}.
          </p>
        )}
        <FaultLine fault={action.fault} />
      </div>
      {maintains && operation && (
        <div class="row">
          <ActionButton action={action} disabled={!canContinue} work={() => goOn(false)}>
            Go on
          </ActionButton>
          {operation !== 'merge' && (
            <ActionButton action={action} work={() => goOn(true)}>
              Skip this commit
            </ActionButton>
          )}
          <AskButton
            label="Abort"
            about={`the ${operation}`}
            title={`Abort the ${operation}?`}
            work={async () => accepted(await askDaemon('POST /git/{repo}/abort', { repo, ...expectedHead(data) }))}
          >
            <p>The files return to where they were when it began. A saved point keeps what is there now.</p>
          </AskButton>
        </div>
      )}
      {maintains && lock?.stale && (
        <AskButton
          label="Remove the lock file"
          about=""
          title={`Remove ${visibleName(lock.file)}?`}
          work={async () => {
            await askDaemon('POST /git/{repo}/abort', { repo, staleLock: true })
            gitChanged()
          }}
        >
          <p>No process holds it any more. Only this file is removed.</p>
        </AskButton>
      )}
    </div>
  )
}
