import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { place } from '../../data/route.js'
import { visibleName } from '../../ui/format.js'
import { Picture } from '../../ui/picture.js'

interface GivenPictureProps {
  readonly path: string
  /** It is in the workspace itself, wherever the conversation works. */
  readonly shared?: boolean
}

/** A picture that a tool or a person gave, as it is now in the files of the shown conversation. */
export const GivenPicture = ({ path, shared = false }: GivenPictureProps) => {
  const [, id = ''] = place.value
  return (
    <figure>
      {served.value.has('workspace.raw') && (
        <Picture
          version={`${id} ${path}`}
          name={path}
          read={() => askDaemon('GET /workspace/raw', { path, ...(!shared && { agent: id }) })}
        />
      )}
      <figcaption class="quiet">
        Picture {visibleName(shared ? path.slice(path.lastIndexOf('/') + 1) : path)}
      </figcaption>
    </figure>
  )
}
