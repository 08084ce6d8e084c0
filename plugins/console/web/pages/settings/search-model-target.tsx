import { askDaemon } from '../../data/api.js'
import { visibleText } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'

const SERVER = 'endpoint/'

/** Where the texts of files go that search sends to its embedding model. */
export const SearchModelTarget = ({ model }: { model: string }) => {
  const servers = useQuery('endpoints', ['endpoints'], () => askDaemon('GET /endpoints'))
  const providers = useQuery('providers', ['providers', 'accounts', 'endpoints', 'capabilities'], () =>
    askDaemon('GET /providers'),
  )
  const at = model.indexOf(':')
  const provider = model.slice(0, at < 0 ? undefined : at)
  const server = servers.data?.endpoints.find(one => SERVER + one.id === provider)
  const label = server?.label ?? providers.data?.providers.find(({ id }) => id === provider)?.label
  const where = server?.baseUrl === undefined ? '' : `, ${server.baseUrl}`
  return (
    <p class={label === undefined ? 'notice warn' : 'notice'} role="status">
      {label === undefined
        ? `Nothing that is connected is called ${visibleText(provider)}: nothing is sent.`
        : `Once saved, the text of this workspace’s files and what is asked goes to ${visibleText(label + where)}.`}
    </p>
  )
}
