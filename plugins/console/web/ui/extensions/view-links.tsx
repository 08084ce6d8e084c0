import { extensionName, shownExtensions, viewBadges } from '../../data/extensions/shown-extensions.js'
import { fragmentOf } from '../../data/route.js'
import { visibleName } from '../format.js'
import { Icon } from '../icons.js'

/** Links to the views of extensions, with the counts that they show; on a phone the page "More" has them. */
export const ViewLinks = ({ at, everywhere = false }: { at: readonly string[]; everywhere?: boolean }) => (
  <>
    {shownExtensions.value.flatMap(extension =>
      (extension.manifest.contributes?.views ?? [])
        .filter(({ surface }) => surface !== 'directory')
        .map(({ id, label }) => {
          const count = viewBadges.value.get(`${extension.id} ${id}`) ?? 0
          const isHere = at[0] === 'x' && at[1] === extension.id && at[2] === id
          return (
            <a
              key={`${extension.id} ${id}`}
              class={`nav-link${everywhere ? ' more-link' : ' wide-only'}`}
              href={fragmentOf('x', extension.id, id)}
              aria-current={isHere ? 'page' : undefined}
              data-row={everywhere ? `x ${extension.id} ${id}` : undefined}
            >
              <Icon name="extension" />
              <span dir="auto">
                {visibleName(label)} <span class="quiet small">{visibleName(extensionName(extension))}</span>
              </span>
              {count > 0 && <span class="count">{count}</span>}
            </a>
          )
        }),
    )}
  </>
)
