import { useSignal } from '@preact/signals'
import type { GitChange } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { accepted, leftHalted } from '../../data/git-answers.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { ComparedTexts } from '../../ui/code/compared-texts.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { countText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { LineCounts } from '../../ui/code/line-counts.js'
import { Icon } from '../../ui/icons.js'
import { Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { Copyable } from '../../ui/copy.js'

const ACTIONS = [
  ['branch', 'Make a branch here'],
  ['tag', 'Tag it'],
  ['checkout', 'Check it out'],
  ['merge', 'Merge it into the branch'],
  ['rebase', 'Replay the branch onto it'],
  ['cherry-pick', 'Copy it onto the branch'],
  ['revert', 'Take its change back with a new commit'],
  ['drop', 'Take it out of the branch'],
  ['soft', 'Move the branch here; files and index stay'],
  ['mixed', 'Move the branch here; files stay'],
  ['hard', 'Move the branch here, files too'],
] as const
type CommitAction = (typeof ACTIONS)[number][0]

const KEEPS: ReadonlySet<CommitAction> = new Set(['merge', 'rebase', 'cherry-pick', 'revert'])
const REWRITES: ReadonlySet<CommitAction> = new Set(['rebase', 'drop', 'soft', 'mixed', 'hard'])

interface CommitActionFormProps {
  readonly repo: string
  readonly sha: string
  readonly parents: number
  readonly close: () => void
}

/** Asks what is to be done with a commit, and does it. */
export const CommitActionForm = ({ repo, sha, parents, close }: CommitActionFormProps) => {
  const what = useSignal<CommitAction>('branch')
  const name = useSignal('')
  const message = useSignal('')
  const keep = useSignal(true)
  const named = what.value === 'branch' || what.value === 'tag'
  const work = async () => {
    const at = { repo, sha }
    const halting = { ...at, ...(keep.value && { onConflict: 'keep' as const }) }
    const picked = { ...halting, ...(parents > 1 && { mainline: 1 }) }
    const said = message.value.trim()
    const done = (): Promise<Parameters<typeof accepted>[0]> => {
      switch (what.value) {
        case 'branch':
          return askDaemon('POST /git/{repo}/branch', { ...at, name: name.value.trim() })
        case 'tag':
          return askDaemon('POST /git/{repo}/tag', { ...at, name: name.value.trim(), ...(said && { message: said }) })
        case 'checkout':
          return askDaemon('POST /git/{repo}/checkout', { repo, ref: sha })
        case 'merge':
          return askDaemon('POST /git/{repo}/merge', halting)
        case 'rebase':
          return askDaemon('POST /git/{repo}/rebase', halting)
        case 'cherry-pick':
          return askDaemon('POST /git/{repo}/cherry-pick', picked)
        case 'revert':
          return askDaemon('POST /git/{repo}/revert', picked)
        case 'drop':
          return askDaemon('POST /git/{repo}/drop', at)
        default:
          return askDaemon('POST /git/{repo}/reset', { ...at, mode: what.value })
      }
    }
    const verdict = await done()
    if (keep.value && KEEPS.has(what.value) && leftHalted(verdict)) {
      goTo('git', repo, 'changes')
      return 'stays'
    }
    accepted(verdict)
    return undefined
  }
  return (
    <DialogForm
      title={`What to do with ${sha.slice(0, 8)}?`}
      verb="Do it"
      danger={what.value === 'hard'}
      close={close}
      ready={!named || name.value.trim() !== ''}
      work={work}
    >
      <ChoiceField label="Action" value={what} choices={ACTIONS} />
      {named && <TextField label="Name" required value={name} />}
      {what.value === 'tag' && <TextField label="Message" value={message} />}
      {KEEPS.has(what.value) && (
        <CheckField label="Where it conflicts, stop and let me resolve it; otherwise nothing changes" value={keep} />
      )}
      {REWRITES.has(what.value) && (
        <p class="notice warn">
          The branch gets other commits. “Undo …” on the page of changes takes it back, and a saved point keeps the
          files.
        </p>
      )}
    </DialogForm>
  )
}

interface CommitPaneProps {
  readonly repo: string
  readonly sha: string
  readonly path: string | undefined
  readonly maintains: boolean
}

/** One commit: its words, the files that it changed, and one of them. */
export const CommitPane = ({ repo, sha, path, maintains }: CommitPaneProps) => {
  const log = useQuery(`commit ${repo} ${sha}`, [], () =>
    askDaemon('GET /git/{repo}/log', { repo, ref: sha, limit: 1 }),
  )
  const files = useQuery(`commit files ${repo} ${sha}`, [], () =>
    askDaemon('GET /git/{repo}/commit-diff', { repo, sha }),
  )
  const commit = log.data?.commits[0]
  return (
    <section class="side-main scrolls" aria-label={`Commit ${sha.slice(0, 8)}`}>
      <div class="pane-tools">
        <a class="button plainly narrow-only" href={fragmentOf('git', repo, 'log')} aria-label="Back to the log">
          <Icon name="back" />
        </a>
        <h2 dir="auto">{commit ? visibleText(commit.subject) : sha.slice(0, 8)}</h2>
        {maintains && (
          <FormButton
            label="Do …"
            about={`something with ${sha.slice(0, 8)}`}
            form={close => (
              <CommitActionForm repo={repo} sha={sha} parents={commit?.parents.length ?? 1} close={close} />
            )}
          />
        )}
      </div>
      <div class="pane-body stack">
        <Loaded query={log}>
          {() =>
            commit && (
              <>
                <p class="quiet small">
                  <Copyable text={commit.sha} what="the commit" />
                  {` · ${visibleText(`${commit.author} <${commit.email}>`)} · `}
                  {momentOf(commit.at)}
                  {commit.parents.map(parent => (
                    <span key={parent}>
                      {' '}
                      · parent{' '}
                      <a class="mono" href={fragmentOf('git', repo, 'log', parent)}>
                        {parent.slice(0, 8)}
                      </a>
                    </span>
                  ))}
                  {(commit.origins ?? []).map(id => (
                    <span key={id}>
                      {' '}
                      · work of{' '}
                      <a href={fragmentOf('c', id)} dir="auto">
                        {visibleName(log.data?.originAgents?.[id]?.title ?? id)}
                      </a>
                    </span>
                  ))}
                </p>
                {commit.body.trim() && <p class="plain-text">{visibleText(commit.body.trim())}</p>}
              </>
            )
          }
        </Loaded>
        <Loaded query={files}>
          {({ files: list, truncated }) => (
            <>
              <ul class="plain-list" aria-label="Changed files">
                {list.map(change => (
                  <li key={change.path}>
                    <a
                      class="mono"
                      href={fragmentOf('git', repo, 'log', sha, change.path)}
                      data-row={change.path}
                      aria-current={change.path === path ? 'true' : undefined}
                    >
                      {visibleName(change.path)}
                    </a>{' '}
                    {change.status !== 'modified' && <span class="tag">{change.status}</span>}{' '}
                    <LineCounts {...change} />
                  </li>
                ))}
              </ul>
              {truncated !== undefined && <p class="quiet">{countText(truncated)} more files are not listed.</p>}
              {path !== undefined && (
                <CommitFile
                  key={path}
                  repo={repo}
                  sha={sha}
                  path={path}
                  change={list.find(change => change.path === path)}
                />
              )}
            </>
          )}
        </Loaded>
      </div>
    </section>
  )
}

const CommitFile = ({
  repo,
  sha,
  path,
  change,
}: {
  repo: string
  sha: string
  path: string
  change: GitChange | undefined
}) => {
  const file = { repo, sha, path, ...(change?.from !== undefined && { from: change.from }) }
  const { data, error } = useQuery(`commit file ${repo} ${sha} ${path}`, [], () =>
    askDaemon('GET /git/{repo}/commit-file-diff', file),
  )
  return (
    <div class="compared">
      <ComparedTexts
        path={path}
        sides={data}
        error={error}
        source={{ source: 'commit', ...file, status: change?.status ?? 'modified' }}
        tools={
          <a class="button" href={fragmentOf('git', repo, 'blame', path, sha)}>
            Blame
          </a>
        }
      />
    </div>
  )
}
