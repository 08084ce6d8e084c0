import { extensionName, shownExtensions } from '../../data/extensions/shown-extensions.js'
import { fragmentOf } from '../../data/route.js'
import { visibleName } from '../format.js'

/** Links to the viewers of extensions that draw files of this kind. */
export const ViewerLinks = ({ path }: { path: string }) => {
  const ending = path.split('.').at(-1)!.toLowerCase()
  return (
    <>
      {shownExtensions.value.flatMap(extension =>
        (extension.manifest.contributes?.viewers ?? [])
          .filter(({ extensions }) => extensions.includes(ending))
          .map(({ id }) => (
            <a
              key={`${extension.id} ${id}`}
              class="button"
              href={fragmentOf('x', extension.id, 'file', id, ...path.split('/'))}
              dir="auto"
            >
              Draw by {visibleName(extensionName(extension))}
            </a>
          )),
      )}
    </>
  )
}
