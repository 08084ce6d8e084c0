import { useSignal } from '@preact/signals'
import type { UncommittedChanges } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { allChanges, expectedHead, gitChanged, seenStampsOf } from '../../data/git-answers.js'
import { useAction } from '../../ui/action.js'
import { useCommands } from '../../ui/commands.js'
import { countText, visibleName } from '../../ui/format.js'
import { CheckField } from '../../ui/fields.js'
import { FaultLine } from '../../ui/page.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { StashForm } from './stash-form.js'
import { UndoButton } from './undo-button.js'

interface CommitFormProps {
  readonly repo: string
  readonly changes: UncommittedChanges
  /** Messages that were drafted for what landed here. */
  readonly drafts: readonly string[]
}

/** Commits what is staged, or everything where nothing is; the message is kept until it was committed. */
export const CommitForm = ({ repo, changes, drafts }: CommitFormProps) => {
  const place = `commit:${repo}`
  const message = useSignal(draftOf(place))
  const amend = useSignal(false)
  const said = useSignal('')
  const action = useAction()
  const { staged, unstaged, conflicted, operation } = changes
  const expected = expectedHead(changes.remote)
  const all = staged.length === 0 && unstaged.length > 0
  const ready =
    message.value.trim() !== '' && conflicted.length === 0 && (staged.length > 0 || unstaged.length > 0 || amend.value)
  const commit = () =>
    void action.run(async () => {
      const { committed, head } = await askDaemon('POST /git/{repo}/commit', {
        ...{ repo, message: message.value },
        ...(all && !amend.value && { all: true }),
        ...(amend.value && { amend: true }),
        ...expected,
      })
      gitChanged()
      if (!committed) throw new Error('there is nothing to commit')
      said.value = `Committed as ${head?.slice(0, 8)}.`
      message.value = ''
      keepDraft(place, '')
      amend.value = false
    })
  useCommands([{ id: 'commit', label: 'Commit', group: 'Git', keys: 'mod+enter', run: () => ready && commit() }])
  return (
    <form
      class="stack commit-form"
      onSubmit={event => {
        event.preventDefault()
        commit()
      }}
    >
      <label class="field">
        Message of the commit
        <textarea
          rows={3}
          dir="auto"
          value={message.value}
          onInput={event => {
            message.value = event.currentTarget.value
            keepDraft(place, message.value)
          }}
          onKeyDown={event => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
            event.preventDefault()
            if (ready) commit()
          }}
        />
      </label>
      {message.value === '' && drafts.length > 0 && (
        <button
          class="button small-button"
          type="button"
          onClick={() => {
            message.value = drafts.join('\n\n')
            keepDraft(place, message.value)
          }}
        >
          Use “{visibleName(drafts[0]!)}”{drafts.length > 1 && ` and ${countText(drafts.length - 1)} more`}
        </button>
      )}
      <CheckField label="In place of the last commit" value={amend} />
      <div class="row">
        <button class="button primary" type="submit" disabled={action.busy || !ready}>
          {action.busy ? 'Committing …' : amend.value ? 'Amend' : all ? 'Commit all' : 'Commit'}
        </button>
        <UndoButton repo={repo} />
        {operation === undefined && (staged.length > 0 || unstaged.length > 0) && (
          <>
            <FormButton label="Stash" about="these changes" form={close => <StashForm repo={repo} close={close} />} />
            <AskButton
              label="Discard all"
              about="changes"
              title="Discard all changes?"
              work={async () => {
                const expect = seenStampsOf(allChanges(changes))
                await askDaemon('POST /git/{repo}/discard', { repo, expect, ...expected })
                gitChanged()
              }}
            >
              <p>Files go back to the last commit, and new ones are deleted. A saved point keeps what is there now.</p>
            </AskButton>
          </>
        )}
      </div>
      <FaultLine fault={action.fault} />
      <p class="quiet small" role="status">
        {said.value}
      </p>
    </form>
  )
}
