import { fragmentOf } from '../../data/route.js'
import { Icon } from '../../ui/icons.js'
import { PageFrame } from '../../ui/page.js'
import { ViewLinks } from '../../ui/extensions/view-links.js'
import { listedPages } from '../../ui/visible.js'
import type { PageProps } from '../registry.js'

/** The pages that the bar of a phone has no room for. */
export const MorePage = (_: PageProps) => (
  <PageFrame title="More">
    <ul class="more-list">
      {listedPages()
        .filter(({ wide }) => wide)
        .map(({ name, label, icon }) => (
          <li key={name}>
            <a class="nav-link more-link" href={fragmentOf(name)} data-row={name}>
              <Icon name={icon} />
              {label}
            </a>
          </li>
        ))}
    </ul>
    <ViewLinks at={[]} everywhere />
  </PageFrame>
)
