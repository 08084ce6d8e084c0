import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session.js'
import { Icon } from '../../ui/icons.js'
import { PageFrame } from '../../ui/page.js'
import { PAGES, reaches, type PageProps } from '../registry.js'

/** The pages that the bar of a phone has no room for. */
export const MorePage = (_: PageProps) => (
  <PageFrame title="More">
    <ul class="more-list">
      {PAGES.filter(page => page.listed && page.wide && reaches(person.value?.role, page.role)).map(
        ({ name, label, icon }) => (
          <li key={name}>
            <a class="nav-link more-link" href={fragmentOf(name)}>
              <Icon name={icon} />
              {label}
            </a>
          </li>
        ),
      )}
    </ul>
  </PageFrame>
)
