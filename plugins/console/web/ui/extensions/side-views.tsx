import { shownExtensions } from '../../data/extensions/shown-extensions.js'
import { lazyView } from '../lazy.js'
import type { SideViewsProps } from './side-view-panels.js'

const Panels = lazyView(async () => (await import('./side-view-panels.js')).SideViewPanels)

/** The panels that extensions add beside what is open; few sandboxes have one. */
export const SideViews = (props: SideViewsProps) =>
  shownExtensions.value.some(({ manifest }) => manifest.contributes?.sideViews?.length) ? <Panels {...props} /> : null
