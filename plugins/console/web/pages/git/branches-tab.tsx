import { useSignal } from '@preact/signals'
import type { GitBranch, GitTag } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { accepted, gitChanged, leftHalted } from '../../data/git-answers.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { agoOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { RepoTabProps } from './repo-tab.js'

const NewBranchForm = ({ repo, close }: { repo: string; close: () => void }) => {
  const name = useSignal('')
  const start = useSignal('')
  const checkout = useSignal(true)
  return (
    <DialogForm
      title="New branch"
      verb="Make"
      close={close}
      work={async () => {
        await askDaemon('POST /git/{repo}/branches', {
          ...{ repo, name: name.value.trim() },
          ...(start.value.trim() && { start: start.value.trim() }),
          ...(checkout.value && { checkout: true }),
        })
        gitChanged()
      }}
    >
      <TextField label="Name" required value={name} />
      <TextField label="Begins at" value={start} placeholder="The commit that is checked out" />
      <CheckField label="Switch to it, with uncommitted changes where git can" value={checkout} />
    </DialogForm>
  )
}

const DeleteBranch = ({ repo, name, sha }: { repo: string; name: string; sha: string }) => {
  const force = useSignal(false)
  return (
    <AskButton
      label="Delete"
      about={`the branch ${visibleName(name)}`}
      title={`Delete the branch ${visibleName(name)}?`}
      work={async () => {
        await askDaemon('POST /git/{repo}/branches/delete', { repo, name, sha, ...(force.value && { force: true }) })
        gitChanged()
      }}
    >
      <p>Its commits stay where other branches have them.</p>
      <CheckField label="Also if it is not merged" value={force} />
    </AskButton>
  )
}

const BranchRow = ({ repo, branch, maintains }: { repo: string; branch: GitBranch; maintains: boolean }) => {
  const { name, current, sha, upstream, ahead, behind, gone, at, heldBy } = branch
  const action = useAction()
  const shown = visibleName(name)
  const combine = async (how: 'merge' | 'rebase') => {
    const asked = { repo, sha, onConflict: 'keep' as const }
    const verdict =
      how === 'merge'
        ? await askDaemon('POST /git/{repo}/merge', asked)
        : await askDaemon('POST /git/{repo}/rebase', asked)
    if (leftHalted(verdict)) return goTo('git', repo, 'changes')
    return void accepted(verdict)
  }
  return (
    <Item
      title={<span class="mono">{shown}</span>}
      state={current ? ['good', 'Checked out'] : gone ? ['warn', 'Gone on the remote'] : undefined}
      detail={
        <>
          {agoOf(at)}
          {upstream && ` · follows ${visibleName(upstream)}: ${ahead} ahead, ${behind} behind`}
          {heldBy !== undefined && (
            <>
              {' '}
              · in the private copy of <a href={fragmentOf('c', heldBy)}>{visibleName(heldBy)}</a>
            </>
          )}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && !current && (
        <>
          <ActionButton
            action={action}
            work={async () => accepted(await askDaemon('POST /git/{repo}/checkout', { repo, ref: name }))}
            about={shown}
          >
            Check out
          </ActionButton>
          <ActionButton action={action} work={() => combine('merge')} about={shown}>
            Merge
          </ActionButton>
          <ActionButton action={action} work={() => combine('rebase')} about={shown}>
            Rebase onto
          </ActionButton>
          <DeleteBranch repo={repo} name={name} sha={sha} />
        </>
      )}
    </Item>
  )
}

const CheckOutRemote = ({ repo, name, branch }: { repo: string; name: string; branch: string }) => {
  const action = useAction()
  return (
    <>
      <ActionButton
        action={action}
        work={async () => accepted(await askDaemon('POST /git/{repo}/checkout', { repo, ref: branch }))}
        about={visibleName(name)}
      >
        Check out
      </ActionButton>
      <FaultLine fault={action.fault} />
    </>
  )
}

const TagRow = ({ repo, tag, maintains }: { repo: string; tag: GitTag; maintains: boolean }) => {
  const { name, sha, at, message } = tag
  const everywhere = useSignal('')
  const action = useAction()
  const remotes = useQuery(`remotes ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/remotes', { repo }))
  const first = remotes.data?.remotes[0]?.name
  return (
    <Item
      title={<span class="mono">{visibleName(name)}</span>}
      detail={
        <>
          <a class="mono" href={fragmentOf('git', repo, 'log', sha)}>
            {sha.slice(0, 8)}
          </a>{' '}
          {agoOf(at)}
          {message && ` · ${visibleText(message)}`}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && (
        <>
          {first !== undefined && (
            <ActionButton
              action={action}
              work={async () =>
                accepted(await askDaemon('POST /git/{repo}/tag/push', { repo, name, remote: first, sha }))
              }
              about={`the tag ${visibleName(name)}`}
            >
              Push
            </ActionButton>
          )}
          <AskButton
            label="Delete"
            about={`the tag ${visibleName(name)}`}
            title={`Delete the tag ${visibleName(name)}?`}
            work={async () => {
              const remote = everywhere.value.trim()
              const { remote: there } = await askDaemon('POST /git/{repo}/tag/delete', {
                ...{ repo, name, sha },
                ...(remote && { remote }),
              })
              gitChanged()
              if (there) accepted(there)
            }}
          >
            <TextField label="Also on the remote" value={everywhere} placeholder={first ?? ''} />
          </AskButton>
        </>
      )}
    </Item>
  )
}

/** The checkouts that share the repository, and its submodules; nothing where there is only this one. */
const Checkouts = ({ repo }: { repo: string }) => {
  const { data } = useQuery(`worktrees ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/worktrees', { repo }))
  const others = data?.worktrees.filter(({ main }) => !main) ?? []
  if (!data || (others.length === 0 && data.submodules.length === 0)) return null
  return (
    <section>
      <h2>Checkouts and submodules</h2>
      <ul class="items">
        {others.map(({ path, conversationId, branch, head, locked, prunable }) => (
          <Item
            key={path ?? conversationId ?? head}
            title={
              conversationId !== undefined ? (
                <a href={fragmentOf('c', conversationId)}>{visibleName(conversationId)}</a>
              ) : (
                <span class="mono">{visibleName(path ?? 'outside of the workspace')}</span>
              )
            }
            detail={[branch, head.slice(0, 8), locked && `locked: ${locked}`, prunable].filter(Boolean).join(' · ')}
          />
        ))}
        {data.submodules.map(({ path, url, recorded, checkedOut, state }) => (
          <Item
            key={path}
            title={<span class="mono">{visibleName(path)}</span>}
            state={[state === 'current' ? 'good' : 'warn', state]}
            detail={`${visibleName(url)} · recorded ${recorded.slice(0, 8)}${
              checkedOut ? `, checked out ${checkedOut.slice(0, 8)}` : ''
            }`}
          />
        ))}
      </ul>
    </section>
  )
}

/** Branches and tags of a repository. */
export const BranchesTab = ({ repo, maintains }: RepoTabProps) => {
  const words = useSignal('')
  const query = useQuery(`branches ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/branches', { repo }))
  const fits = ({ name }: { readonly name: string }) => name.toLowerCase().includes(words.value.trim().toLowerCase())
  return (
    <main class="page-body">
      <div class="sections">
        <div class="section-head">
          <TextField label="Name" type="search" value={words} />
          {maintains && (
            <FormButton label="New branch" primary form={close => <NewBranchForm repo={repo} close={close} />} />
          )}
        </div>
        <Loaded query={query}>
          {({ branches, remotes, tags }) => (
            <>
              <section>
                <h2>Branches</h2>
                {branches.length === 0 && <p class="quiet">The first commit makes the first branch.</p>}
                <ul class="items">
                  {branches.filter(fits).map(branch => (
                    <BranchRow key={branch.name} repo={repo} branch={branch} maintains={maintains} />
                  ))}
                </ul>
              </section>
              {remotes.some(fits) && (
                <section>
                  <h2>On remotes, as last seen</h2>
                  <ul class="items">
                    {remotes.filter(fits).map(({ name, branch, at }) => (
                      <Item key={name} title={<span class="mono">{visibleName(name)}</span>} detail={agoOf(at)}>
                        {maintains && <CheckOutRemote repo={repo} name={name} branch={branch} />}
                      </Item>
                    ))}
                  </ul>
                </section>
              )}
              {tags.some(fits) && (
                <section>
                  <h2>Tags</h2>
                  <ul class="items">
                    {tags.filter(fits).map(tag => (
                      <TagRow key={tag.name} repo={repo} tag={tag} maintains={maintains} />
                    ))}
                  </ul>
                </section>
              )}
            </>
          )}
        </Loaded>
        <Checkouts repo={repo} />
      </div>
    </main>
  )
}
