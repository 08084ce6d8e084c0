import t from 'tap'
import { daemonWith } from './support/daemon.js'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required?: boolean
  readonly example?: unknown
}
interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: { readonly [type: string]: { readonly example?: object } } }
  readonly responses: { readonly [status: string]: { readonly description?: string } }
}

const REMOVES = /\/(?:remove|delete|close|drop|disconnect|purge|cancel|decline|stop|discard|archive|unpublish)$/
/** Fields that name what is removed. */
const NAMES = /^(?:id|ids|name|key|app|card|conversationId|messageId|runId|sha|ref|email|handshake|repo|path)$/
const NOBODY = 'nobody-knows-this'

const unknown = (name: string, example: unknown): unknown => {
  if (!NAMES.test(name)) return example
  if (Array.isArray(example)) return [NOBODY]
  if (typeof example === 'number') return 987_654_321
  return name === 'sha' ? 'e'.repeat(40) : name === 'email' ? 'nobody@example.org' : NOBODY
}

t.test('what nobody knows is not removed or ended, where the contract says that it is not found', async t => {
  const daemon = await daemonWith(t, [])
  const { paths } = (await (await fetch(`${daemon.url}/openapi.json`)).json()) as {
    paths: { [path: string]: { [method: string]: Operation } }
  }
  let asked = 0
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { parameters = [], requestBody, responses }] of Object.entries(operations)) {
      if (method !== 'delete' && !(method === 'post' && REMOVES.test(path))) continue
      // Others say what else is not found, such as what is closed; what is gone is removed already there.
      if (!/\b(?:no|nothing|unknown|not)\b/i.test(responses['404']?.description ?? '')) continue
      const example = requestBody?.content['application/json']?.example ?? {}
      const body = Object.fromEntries(Object.entries(example).map(([name, value]) => [name, unknown(name, value)]))
      const place = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(unknown(name, NOBODY))))
      const query = parameters
        .filter(each => each.in === 'query' && each.required)
        .map(({ name, example: value }) => `${name}=${encodeURIComponent(String(unknown(name, value)))}`)
      const address = `${place}${query.length > 0 ? `?${query.join('&')}` : ''}`
      const { status } = await daemon.fetch(address, { method: method.toUpperCase(), body: JSON.stringify(body) })
      t.ok(status >= 400, `${method} ${address} ${JSON.stringify(body)} answers ${status}`)
      asked += 1
    }
  }
  t.ok(asked > 15, `${asked} calls`)
})
