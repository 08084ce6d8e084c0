import type { ExtensionManifest, ExtensionRecord } from '../../../../extensions/contract.js'
import { agoOf, countText, visibleName } from '../../ui/format.js'
import { DoneDialog, FormButton } from '../../ui/dialog.js'
import { OnceValue } from '../../ui/fields.js'

/** A manifest that asks only for what was used. */
const narrowed = (manifest: ExtensionManifest, unused: ReadonlySet<string>): ExtensionManifest => {
  const { sandbox, daemon } = manifest.permissions ?? {}
  const kept = (entries: readonly string[] | undefined) => entries?.filter(entry => !unused.has(entry))
  const permissions = {
    ...(kept(sandbox)?.length && { sandbox: kept(sandbox)! }),
    ...(kept(daemon)?.length && { daemon: kept(daemon)! }),
  }
  const { permissions: _, ...rest } = manifest
  return { ...rest, ...(Object.keys(permissions).length > 0 && { permissions }) }
}

/** What an extension declared that it calls and reaches, beside how often it did. */
export const DeclaredAndUsed = ({ record: { id, manifest, usage } }: { record: ExtensionRecord }) => {
  const { sandbox = [], daemon = [] } = manifest.permissions ?? {}
  const entries = [
    ...sandbox.map(entry => ({ entry, half: 'page and reach' })),
    ...daemon.map(entry => ({ entry, half: 'backend' })),
  ]
  const unused = new Set(entries.map(({ entry }) => entry).filter(entry => !Object.hasOwn(usage, entry)))
  return (
    <section aria-labelledby="declared-heading">
      <div class="section-head">
        <h2 id="declared-heading">Declared and used</h2>
        {unused.size > 0 && (
          <FormButton
            label="Narrow"
            about={`what ${id} declares`}
            form={close => (
              <DoneDialog title="A narrower manifest" close={close}>
                <p>
                  Without the {countText(unused.size)} {unused.size === 1 ? 'entry' : 'entries'} that it never used. Put
                  it in the place of the manifest: less than what was approved needs no approval.
                </p>
                <OnceValue label="Manifest" value={JSON.stringify(narrowed(manifest, unused))} />
              </DoneDialog>
            )}
          />
        )}
      </div>
      {entries.length === 0 ? (
        <p class="quiet">It declares nothing: it reaches its own routes and data alone.</p>
      ) : (
        <div class="table-box" tabIndex={0} role="group" aria-labelledby="declared-heading">
          <table>
            <thead>
              <tr>
                <th scope="col">Entry</th>
                <th scope="col">Of its</th>
                <th scope="col">Used</th>
              </tr>
            </thead>
            <tbody>
              {entries.map(({ entry, half }) => {
                const used = usage[entry]
                return (
                  <tr key={`${half} ${entry}`}>
                    <td class="mono wraps">{visibleName(entry)}</td>
                    <td>{half}</td>
                    <td>{used ? `${countText(used.calls)} times, ${agoOf(Date.parse(used.last))}` : 'never'}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
