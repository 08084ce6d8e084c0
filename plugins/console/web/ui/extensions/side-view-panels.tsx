import { useSignal } from '@preact/signals'
import type { UiSurface } from '../../../../../sdk/ui-host.js'
import type { ExtensionSideView } from '../../../../extensions/contract.js'
import { conditionHolds, type ConditionKeys } from '../../../../../sdk/conditions.js'
import { person } from '../../data/session/session.js'
import {
  extensionName,
  shownExtensions,
  viewBadges,
  type ShownExtension,
} from '../../data/extensions/shown-extensions.js'
import { visibleName } from '../format.js'
import { lazyView } from '../lazy.js'

const ExtensionFrame = lazyView(async () => (await import('./extension-frame.js')).ExtensionFrame)

/** The place of side views on a page. */
export interface SideViewsProps {
  readonly beside: ExtensionSideView['beside']
  /** What is open beside them. */
  readonly surface: Omit<UiSurface, 'view'>
  /** More of what conditions may name. */
  readonly keys?: ConditionKeys
}

/** The panels that extensions add beside what is open; each runs once it was unfolded. */
export const SideViewPanels = ({ beside, surface, keys = {} }: SideViewsProps) => {
  const { conversation, path, run } = surface
  const known = { role: person.value?.role, conversation, path, run, ...keys }
  return (
    <>
      {shownExtensions.value.flatMap(extension =>
        (extension.manifest.contributes?.sideViews ?? [])
          .filter(view => view.beside === beside && conditionHolds(view.when, known))
          .map(view => (
            <SideView
              key={`${extension.id} ${view.id}`}
              extension={extension}
              view={view}
              surface={{ ...surface, view: view.id }}
            />
          )),
      )}
    </>
  )
}

const SideView = ({
  extension,
  view: { id, label },
  surface,
}: {
  extension: ShownExtension
  view: ExtensionSideView
  surface: UiSurface
}) => {
  const open = useSignal(false)
  const count = viewBadges.value.get(`${extension.id} ${id}`) ?? 0
  return (
    <details
      class="folded side-view"
      onToggle={event => {
        open.value = event.currentTarget.open
      }}
    >
      <summary dir="auto">
        {visibleName(label)} <span class="quiet">{visibleName(extensionName(extension))}</span>
        {count > 0 && <span class="count">{count}</span>}
      </summary>
      {open.value && <ExtensionFrame extension={extension} surface={surface} label={visibleName(label)} />}
    </details>
  )
}
