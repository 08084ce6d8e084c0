import { useSignal } from '@preact/signals'
import type { StashEntry } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { accepted, gitChanged, leftHalted } from '../../data/git-answers.js'
import { goTo } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { RepoTabProps } from './repo-tab.js'
import { StashForm } from './stash-form.js'

const Files = ({ repo, entry }: { repo: string; entry: StashEntry }) => {
  const query = useQuery(`stash ${repo} ${entry.sha}`, [], () =>
    askDaemon('GET /git/{repo}/stash-diff', { repo, ref: entry.ref, sha: entry.sha }),
  )
  return (
    <Loaded query={query}>
      {({ files }) => (
        <ul class="plain-list">
          {files.map(({ path, status }) => (
            <li key={path}>
              <span class="mono">{visibleName(path)}</span> <span class="tag">{status}</span>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}

const StashRow = ({ repo, entry, maintains }: { repo: string; entry: StashEntry; maintains: boolean }) => {
  const { ref, sha, subject, branch, at } = entry
  const action = useAction()
  const open = useSignal(false)
  const apply = async (pop: boolean) => {
    const verdict = await askDaemon('POST /git/{repo}/stash/apply', {
      ...{ repo, ref, sha, onConflict: 'keep' as const },
      ...(pop && { pop }),
    })
    if (leftHalted(verdict)) return goTo('git', repo, 'changes')
    return void accepted(verdict)
  }
  return (
    <Item
      title={visibleText(subject)}
      detail={
        <>
          {ref} · {agoOf(at)}
          {branch && ` · made on ${visibleName(branch)}`}
          {open.value && <Files repo={repo} entry={entry} />}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      <button
        class="button"
        type="button"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value
        }}
      >
        Files<span class="visually-hidden"> of {ref}</span>
      </button>
      {maintains && (
        <>
          <ActionButton action={action} work={() => apply(false)} about={ref}>
            Apply
          </ActionButton>
          <ActionButton action={action} work={() => apply(true)} about={ref}>
            Apply and drop
          </ActionButton>
          <AskButton
            label="Drop"
            about={ref}
            title={`Drop ${ref}?`}
            work={async () => {
              await askDaemon('POST /git/{repo}/stash/drop', { repo, ref, sha })
              gitChanged()
            }}
          >
            <p>{visibleText(subject)} is thrown away.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

/** What is set aside in a repository. */
export const StashTab = ({ repo, maintains }: RepoTabProps) => {
  const query = useQuery(`stashes ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/stashes', { repo }))
  return (
    <main class="page-body">
      <div class="sections">
        {maintains && (
          <div class="section-head">
            <FormButton label="Set changes aside" primary form={close => <StashForm repo={repo} close={close} />} />
          </div>
        )}
        <Loaded query={query}>
          {({ stashes }) =>
            stashes.length === 0 ? (
              <p class="quiet">Uncommitted work that you set aside appears here.</p>
            ) : (
              <ul class="items">
                {stashes.map(entry => (
                  <StashRow key={entry.sha} repo={repo} entry={entry} maintains={maintains} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </div>
    </main>
  )
}
