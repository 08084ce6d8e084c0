import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { accepted } from '../../data/git-answers.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'

/** Sets uncommitted work aside. */
export const StashForm = ({ repo, close }: { repo: string; close: () => void }) => {
  const message = useSignal('')
  const untracked = useSignal(true)
  return (
    <DialogForm
      title="Set these changes aside"
      verb="Stash"
      close={close}
      work={async () =>
        accepted(
          await askDaemon('POST /git/{repo}/stash', {
            repo,
            ...(message.value.trim() && { message: message.value.trim() }),
            ...(untracked.value && { includeUntracked: true }),
          }),
        )
      }
    >
      <TextField label="Message" value={message} />
      <CheckField label="New files too" value={untracked} />
    </DialogForm>
  )
}
