import { useSignal } from '@preact/signals'
import type { InstallPreview } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { goTo } from '../../data/route.js'
import { DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { sizeTextOf, visibleName } from '../../ui/format.js'
import { DigestLine, PowersView } from './powers.js'

const TRUST = {
  verified: 'Its registry verified this commit.',
  listed: 'Its registry lists this commit.',
  unlisted: 'No registry lists this commit.',
  blocked: 'Its registry blocks it.',
} as const

const Shown = ({ preview }: { preview: InstallPreview }) => {
  const { id, manifest, trust, trustReason, compatible, powers, digest, problems, size, conflicts } = preview
  return (
    <>
      <h3>
        {visibleName(id)} {visibleName(manifest.version ?? '0.0.0')}
      </h3>
      <p class="quiet small">
        {size.files} files, {sizeTextOf(size.bytes)}. {TRUST[trust]} {trustReason && visibleName(trustReason)}
      </p>
      {!compatible && <p class="notice warn">It is for another version of the sandbox: nothing of it would be used.</p>}
      {conflicts !== undefined && (
        <p class="notice bad">There is an extension with this id: {visibleName(conflicts)}.</p>
      )}
      {problems.map(problem => (
        <p key={problem} class="notice warn">
          {visibleName(problem)}
        </p>
      ))}
      <PowersView powers={powers} />
      <DigestLine digest={digest} />
    </>
  )
}

/** Shows what a commit would be allowed to do, then installs exactly that. */
export const InstallForm = ({ close, owns }: { close: () => void; owns: boolean }) => {
  const url = useSignal('')
  const ref = useSignal('')
  const path = useSignal('')
  const secret = useSignal('')
  const registry = useSignal('')
  const preview = useSignal<InstallPreview | undefined>(undefined)
  const source = () => ({
    ...{ url: url.value.trim(), ref: ref.value.trim() },
    ...(path.value && { path: path.value }),
    ...(secret.value && { secret: secret.value }),
    ...(registry.value && { registry: registry.value }),
  })
  const shown = preview.value
  if (shown)
    return (
      <DialogForm
        key="install"
        title="Install an extension"
        verb="Install"
        close={close}
        ready={owns}
        work={async () => {
          let installed = ''
          const events = await askDaemon('POST /extensions/install', { ...source(), digest: shown.digest })
          for await (const event of events) if (event.kind === 'result') installed = event.id
          refetch(new Set(['extensions']))
          goTo('extensions', installed)
        }}
      >
        <Shown preview={shown} />
        {!owns && <p class="notice">Only an owner installs extensions.</p>}
      </DialogForm>
    )
  return (
    <DialogForm
      key="look"
      title="Install an extension"
      verb="Look at it"
      close={close}
      ready={url.value !== '' && ref.value !== ''}
      work={async () => {
        preview.value = await askDaemon('POST /extensions/install/preview', source())
        return 'stays'
      }}
    >
      <TextField
        label="Repository"
        value={url}
        required
        hint="An https or ssh address, or a repository of the workspace."
      />
      <TextField label="Commit" value={ref} required hint="All 40 digits: what you look at is what is installed." />
      <TextField label="Folder in the repository" value={path} />
      <TextField label="Secret" value={secret} hint="The name of a stored secret that is sent as access token." />
      <TextField label="Registry" value={registry} hint="The index that is asked for updates and warnings." />
    </DialogForm>
  )
}
