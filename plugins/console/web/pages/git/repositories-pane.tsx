import { useSignal } from '@preact/signals'
import type { RepoSync, UncommittedChanges } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { gitChanged, repoTitle } from '../../data/git-answers.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { BoneWords, FaultLine, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'

const reposChanged = (): void => {
  refetch(new Set(['repos']))
  gitChanged()
}

const CloneForm = ({ close }: { close: () => void }) => {
  const url = useSignal('')
  const name = useSignal('')
  const branch = useSignal('')
  const shallow = useSignal(false)
  const guessed = /([^/:]+?)(?:\.git)?\/?$/.exec(url.value.trim())?.[1] ?? ''
  return (
    <DialogForm
      title="Clone a repository"
      verb="Clone"
      close={close}
      work={async () => {
        const { name: repo } = await askDaemon('POST /workspace/repos', {
          ...{ name: name.value.trim() || guessed, cloneUrl: url.value.trim() },
          ...(branch.value.trim() && { branch: branch.value.trim() }),
          ...(shallow.value && { filter: 'blob:none' as const }),
        })
        reposChanged()
        goTo('git', repo)
        return 'stays'
      }}
    >
      <p>A large repository takes minutes. If a secret is bound to the host, the clone signs in with it.</p>
      <TextField label="Address" required value={url} placeholder="https://example.org/team/project.git" />
      <TextField label="Folder" value={name} placeholder={guessed} />
      <TextField label="Branch" value={branch} placeholder="The default branch" />
      <CheckField label="Without the content of older versions" value={shallow} />
    </DialogForm>
  )
}

const StartForm = ({ close }: { close: () => void }) => {
  const path = useSignal('')
  const commit = useSignal(true)
  return (
    <DialogForm
      title="Start a repository"
      verb="Start"
      close={close}
      work={async () => {
        const { repo } = await askDaemon('POST /workspace/repos/init', {
          ...{ path: path.value.trim(), commit: commit.value },
        })
        reposChanged()
        goTo('git', repo)
        return 'stays'
      }}
    >
      <TextField label="Folder" required value={path} hint="A new one, or one that is there: its files stay." />
      <CheckField label="With a first commit of what is there" value={commit} />
    </DialogForm>
  )
}

const OUTCOMES: { readonly [status in RepoSync['status']]: string } = {
  updated: 'moved forward',
  current: 'was current',
  dirty: 'has uncommitted work',
  diverged: 'has commits of its own, as the remote has',
  'no-remote': 'has no remote',
  skipped: 'was busy',
  error: 'failed',
}

const SyncButton = () => {
  const action = useAction()
  const outcome = useSignal<readonly RepoSync[]>([])
  return (
    <>
      <ActionButton
        action={action}
        work={async () => {
          outcome.value = (await askDaemon('POST /workspace/sync', {})).repos
          gitChanged()
        }}
      >
        {action.busy ? 'Fetching …' : 'Bring all up to date'}
      </ActionButton>
      <FaultLine fault={action.fault} />
      <div role="status" class="small">
        {outcome.value.map(({ repo, status, message }) => (
          <div key={repo}>
            {visibleName(repoTitle(repo))} {OUTCOMES[status] ?? status}
            {message && `: ${visibleName(message)}`}
          </div>
        ))}
      </div>
    </>
  )
}

const stateOfRepo = (changes: UncommittedChanges | undefined): ToneWord | undefined =>
  changes === undefined
    ? undefined
    : changes.error
      ? ['bad', 'Cannot be read']
      : changes.operation
        ? ['warn', `In a ${changes.operation}`]
        : changes.conflicted.length
          ? ['bad', 'Conflicts']
          : undefined

/** How many paths are changed, in words. */
const countOf = ({ staged, unstaged, conflicted, truncated = 0 }: UncommittedChanges): string => {
  const count = new Set([...staged, ...unstaged, ...conflicted].map(({ path }) => path)).size + truncated
  return count === 0 ? 'nothing uncommitted' : `${countText(count)} changed`
}

/** Every repository of the workspace, and how new ones come. */
export const RepositoriesPane = () => {
  const repos = useQuery('git repos', ['repos'], () => askDaemon('GET /git/repos'))
  const changes = useQuery('changes', ['refs', 'files'], () => askDaemon('GET /git/changes', {}))
  const remotes = useQuery('remote repos', ['repos'], () => askDaemon('GET /git/remote-repos'))
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame
      title="Git"
      tools={
        maintains && (
          <>
            <FormButton label="Start a repository" form={close => <StartForm close={close} />} />
            <FormButton label="Clone" about="a repository" primary form={close => <CloneForm close={close} />} />
          </>
        )
      }
    >
      <Loaded query={repos}>
        {({ repos: nested }) => (
          <ul class="items">
            {['root', ...nested].map(repo => {
              const found = changes.data?.repos.find(one => one.repo === repo)
              const far = remotes.data?.repos.find(one => one.repo === repo)
              return (
                <Item
                  key={repo}
                  title={<a href={fragmentOf('git', repo)}>{visibleName(repoTitle(repo))}</a>}
                  state={stateOfRepo(found)}
                  detail={
                    <>
                      {found?.branch && `${visibleName(found.branch)} · `}
                      {found?.error ? (
                        visibleName(found.error)
                      ) : found ? (
                        countOf(found)
                      ) : changes.data ? (
                        'nothing uncommitted'
                      ) : changes.error === undefined ? (
                        <BoneWords />
                      ) : (
                        'what is uncommitted cannot be read now'
                      )}
                      {found?.remote
                        && (found.remote.ahead > 0 || found.remote.behind > 0)
                        && ` · ${found.remote.ahead} ahead, ${found.remote.behind} behind`}
                      {far && ` · ${visibleName(`${far.host}/${far.project}`)}`}
                      {changes.data?.committing?.includes(repo) && ' · a commit is on its way'}
                    </>
                  }
                />
              )
            })}
          </ul>
        )}
      </Loaded>
      {maintains && (
        <div class="stack">
          <div>
            <SyncButton />
          </div>
        </div>
      )}
    </PageFrame>
  )
}
