import { useSignal } from '@preact/signals'
import type { AgentCard } from '../../../../agent/contract.js'
import type { UncommittedChanges } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { gitChanged } from '../../data/git-answers.js'
import { served } from '../../data/live.js'
import { fragmentOf } from '../../data/route.js'
import { DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { filesText, visibleName } from '../../ui/format.js'
import { useLastAnswer, useQuery } from '../../ui/query.js'
import { cardTitle } from '../../ui/status.js'

/** So many files are committed by their names, and so many are named. */
const MOST_COMMITTED = 500
const MOST_NAMED = 4

const useUncommitted = (): readonly UncommittedChanges[] => {
  const serves = served.value.has('git.changes')
  const found = useQuery(`uncommitted ${serves}`, ['files', 'refs', 'repos', 'landings'], async () =>
    serves ? (await askDaemon('GET /git/changes', {})).repos : [],
  )
  return useLastAnswer(found) ?? []
}

const pathsIn = ({ conflicted, staged, unstaged }: UncommittedChanges): string[] => [
  ...new Set([...conflicted, ...staged, ...unstaged].map(({ path }) => path)),
]

const namesOf = (paths: readonly string[]): string =>
  paths.slice(0, MOST_NAMED).map(visibleName).join(', ') + (paths.length > MOST_NAMED ? ', …' : '')

/** Says before a conversation begins what of the workspace its private copy starts without. */
export const UncommittedNote = () => {
  const paths = useUncommitted().flatMap(repo =>
    pathsIn(repo).map(path => (repo.repo === 'root' ? path : `${repo.repo}/${path}`)),
  )
  if (paths.length === 0) return null
  return (
    <p class="notice" role="note">
      The copy starts from the last commit, without {filesText(paths.length)} of the workspace that{' '}
      {paths.length === 1 ? 'is' : 'are'} not committed ({namesOf(paths)}). <a href={fragmentOf('git')}>Commit first</a>
    </p>
  )
}

/** Says what a conversation landed that is not committed, and commits exactly that. */
export const LandedUncommitted = ({ agent }: { agent: AgentCard }) => {
  const open = useSignal(false)
  const message = useSignal('')
  const landed = useUncommitted().flatMap(({ origins = {}, ...state }) => {
    const paths = pathsIn(state).filter(path => origins[path]?.[0] === agent.id)
    return paths.length > 0 ? [{ repo: state.repo, paths }] : []
  })
  const paths = landed.flatMap(one => one.paths)
  if (paths.length === 0) return null
  const tooMany = landed.some(one => one.paths.length > MOST_COMMITTED)
  const commit = async () => {
    for (const one of landed) await askDaemon('POST /git/{repo}/commit', { ...one, only: true, message: message.value })
    gitChanged()
  }
  return (
    <div class="notice row landed-note" role="note">
      <span class="grow">
        {filesText(paths.length)} of this work {paths.length === 1 ? 'is' : 'are'} in the workspace and not committed:
        new conversations start without {paths.length === 1 ? 'it' : 'them'}.
      </span>
      {tooMany ? (
        <a class="button" href={fragmentOf('git')}>
          Commit …
        </a>
      ) : (
        <button
          class="button"
          type="button"
          onClick={() => {
            message.value = agent.landedMessage?.subject ?? cardTitle(agent)
            open.value = true
          }}
        >
          Commit …
        </button>
      )}
      {open.value && (
        <DialogForm
          title={`Commit ${filesText(paths.length)}`}
          verb="Commit"
          close={() => {
            open.value = false
          }}
          ready={message.value.trim() !== ''}
          work={commit}
        >
          <p class="quiet">{namesOf(paths)}. Nothing else of the workspace is committed.</p>
          <TextField label="Message of the commit" value={message} required />
        </DialogForm>
      )}
    </div>
  )
}
