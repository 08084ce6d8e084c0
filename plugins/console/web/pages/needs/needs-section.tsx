import { askDaemon } from '../../data/api.js'
import { useCounted, type CountedProps } from '../../ui/lists/counted.js'
import { Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { NeedList } from './need-list.js'

/** The open needs; nothing where none is. */
export const NeedsSection = (props: CountedProps) => {
  const list = useQuery('open needs', ['needs'], () => askDaemon('GET /needs', {}))
  useCounted(props, list.data?.needs.length)
  return (
    <Loaded query={list}>
      {({ needs }) =>
        needs.length > 0 && (
          <section aria-labelledby="needs-heading">
            <h2 id="needs-heading">What agents need</h2>
            <NeedList needs={needs} />
          </section>
        )
      }
    </Loaded>
  )
}
