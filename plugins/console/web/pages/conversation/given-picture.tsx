import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { place } from '../../data/route.js'
import { visibleName } from '../../ui/format.js'
import { Picture } from '../../ui/picture.js'

/** A picture that a tool gave, as it is now in the files of the shown conversation. */
export const GivenPicture = ({ path }: { path: string }) => {
  const [, id = ''] = place.value
  return (
    <figure>
      {served.value.has('workspace.raw') && (
        <Picture
          version={`${id} ${path}`}
          name={path}
          read={() => askDaemon('GET /workspace/raw', { path, agent: id })}
        />
      )}
      <figcaption class="quiet">Picture {visibleName(path)}</figcaption>
    </figure>
  )
}
