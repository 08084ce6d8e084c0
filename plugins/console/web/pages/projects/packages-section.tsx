import { askDaemon } from '../../data/api.js'
import { visibleName } from '../../ui/format.js'
import { Item } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

/** The packages of a repository that is a workspace of packages, and which of them use each other. */
export const PackagesSection = ({ repo }: { repo: string }) => {
  const { data } = useQuery(`packages ${repo}`, ['files'], () =>
    askDaemon('GET /workspace/repos/{repo}/graph', { repo }),
  )
  if (!data || data.packages.length === 0) return null
  const users = Map.groupBy(data.edges, ({ from }) => from)
  return (
    <section aria-labelledby="packages-heading">
      <h2 id="packages-heading">Packages</h2>
      <ul class="items">
        {data.packages.map(({ name, dir }) => {
          const used = [...new Set(users.get(name)?.map(({ to }) => visibleName(to)))]
          return (
            <Item
              key={name}
              title={visibleName(name)}
              detail={
                <>
                  <span class="mono">{visibleName(dir || '.')}</span>
                  {used.length > 0 && ` · uses ${used.join(', ')}`}
                </>
              }
            />
          )
        })}
      </ul>
    </section>
  )
}
