import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { GitRemote } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { accepted, expectedHead, gitChanged } from '../../data/git-answers.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, countText, spanText, visibleName } from '../../ui/format.js'
import { useNow } from '../../ui/now.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import type { RepoTabProps } from './repo-tab.js'
import { Copyable } from '../../ui/copy.js'

const RemoteForm = ({ repo, remote, close }: { repo: string; remote?: GitRemote; close: () => void }) => {
  const name = useSignal(remote?.name ?? '')
  const url = useSignal(remote?.url ?? '')
  return (
    <DialogForm
      title={remote ? `The address of ${visibleName(remote.name)}` : 'Add a remote'}
      verb={remote ? 'Change' : 'Add'}
      close={close}
      work={async () => {
        await askDaemon('POST /git/{repo}/remotes', { repo, name: name.value.trim(), url: url.value.trim() })
        gitChanged()
      }}
    >
      {!remote && <TextField label="Name" required value={name} placeholder="origin" />}
      <TextField
        label="Address"
        required
        value={url}
        placeholder="https://example.org/team/project.git"
        hint="Leave passwords out: fetch and push use the secret that is bound to the host."
      />
    </DialogForm>
  )
}

/** How long something takes already. */
const Elapsed = ({ what }: { what: string }) => {
  const began = useSignal(Date.now())
  const now = useNow()
  useEffect(() => {
    began.value = Date.now()
  }, [what])
  return (
    <p class="row">
      <progress aria-label={what} />
      <span role="status">{what} …</span>
      <span class="quiet small">{spanText(Math.max(0, now - began.value))}</span>
    </p>
  )
}

/** What is exchanged with remotes, and where they are. */
export const RemotesTab = ({ repo, maintains }: RepoTabProps) => {
  const action = useAction()
  const doing = useSignal('')
  const said = useSignal('')
  const state = useQuery(`remote ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/remote', { repo }))
  const remotes = useQuery(`remotes ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/remotes', { repo }))
  const mayFetch = reaches(person.value?.role, 'collaborator')
  const run = (what: string, done: string, work: () => Promise<Parameters<typeof accepted>[0]>) =>
    void action.run(async () => {
      doing.value = what
      said.value = ''
      accepted(await work())
      said.value = done
    })
  const push = (force: boolean) =>
    askDaemon('POST /git/{repo}/push', {
      repo,
      ...(force && { force: 'with-lease' as const }),
      ...expectedHead(state.data),
    })
  const there = (remotes.data?.remotes.length ?? 0) > 0
  return (
    <main class="page-body">
      <div class="sections">
        <Loaded query={state}>
          {({ remote, branch, upstream, ahead, behind }) => (
            <section>
              <h2>This branch</h2>
              <p>
                {branch === undefined ? 'No branch is checked out.' : visibleName(branch)}
                {upstream === undefined
                  ? remote !== undefined && `, which follows no branch of ${visibleName(remote)} yet`
                  : ` follows ${visibleName(upstream)}: ${countText(ahead)} ahead, ${countText(behind)} behind`}
              </p>
              {there && (
                <div class="row">
                  {mayFetch && (
                    <button
                      class="button"
                      type="button"
                      disabled={action.busy}
                      onClick={() => run('Fetching', 'Fetched.', () => askDaemon('POST /git/{repo}/fetch', { repo }))}
                    >
                      Fetch
                    </button>
                  )}
                  {maintains && (
                    <>
                      <button
                        class="button"
                        type="button"
                        disabled={action.busy}
                        onClick={() => run('Pulling', 'Pulled.', () => askDaemon('POST /git/{repo}/pull', { repo }))}
                      >
                        Pull
                      </button>
                      <button
                        class="button primary"
                        type="button"
                        disabled={action.busy}
                        onClick={() => run('Pushing', 'Pushed.', () => push(false))}
                      >
                        Push
                      </button>
                      <AskButton
                        label="Overwrite"
                        about="the branch on the remote"
                        title="Overwrite the branch on the remote?"
                        work={async () => accepted(await push(true))}
                      >
                        <p>What is there is replaced, but only if it is still what was last fetched.</p>
                      </AskButton>
                    </>
                  )}
                </div>
              )}
              {action.busy && <Elapsed what={doing.value} />}
              <FaultLine fault={action.fault} />
              <p class="quiet small" role="status">
                {said.value}
              </p>
            </section>
          )}
        </Loaded>
        <section>
          <div class="section-head">
            <h2>Remotes</h2>
            {maintains && <FormButton label="Add a remote" form={close => <RemoteForm repo={repo} close={close} />} />}
          </div>
          <Loaded query={remotes}>
            {({ remotes: list }) =>
              list.length === 0 ? (
                <p class="quiet">Addresses with which this repository exchanges commits appear here.</p>
              ) : (
                <ul class="items">
                  {list.map(remote => (
                    <Item
                      key={remote.name}
                      title={visibleName(remote.name)}
                      detail={
                        <>
                          <Copyable text={remote.url} what="the address">
                            {visibleName(remote.url)}
                          </Copyable>
                          {remote.pushUrl !== undefined && remote.pushUrl !== remote.url && (
                            <>
                              , pushed to <span class="mono">{visibleName(remote.pushUrl)}</span>
                            </>
                          )}{' '}
                          · {countText(remote.branches)} branches
                          {remote.fetchedAt !== undefined && ` · fetched ${agoOf(remote.fetchedAt)}`}
                        </>
                      }
                    >
                      {maintains && (
                        <>
                          <FormButton
                            label="Change"
                            about={visibleName(remote.name)}
                            form={close => <RemoteForm repo={repo} remote={remote} close={close} />}
                          />
                          <AskButton
                            label="Remove"
                            about={visibleName(remote.name)}
                            title={`Remove ${visibleName(remote.name)}?`}
                            work={async () => {
                              await askDaemon('POST /git/{repo}/remotes', { repo, name: remote.name })
                              gitChanged()
                            }}
                          >
                            <p>Its branches as last seen go too; commits of yours stay.</p>
                          </AskButton>
                        </>
                      )}
                    </Item>
                  ))}
                </ul>
              )
            }
          </Loaded>
        </section>
      </div>
    </main>
  )
}
