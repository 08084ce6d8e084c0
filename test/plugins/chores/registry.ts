import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A server of packages that speaks the protocol of npm's registry. */
export interface PackageRegistry {
  readonly url: string
  /** The paths that were asked for. */
  readonly asked: string[]
  /** Stops answering: connections are refused from then on. */
  close(): Promise<void>
}

const ADVISORY = { id: 7, severity: 'high', title: 'Reads beyond its end', vulnerable_versions: '<2.0.0' }

/** What the endpoint answers that pnpm and yarn ask. */
const audited = {
  actions: [],
  muted: [],
  advisories: {
    7: {
      ...ADVISORY,
      module_name: 'lib',
      patched_versions: '>=2.0.0',
      findings: [{ version: '1.0.0', paths: ['lib'] }],
    },
  },
  metadata: { vulnerabilities: { info: 0, low: 0, moderate: 0, high: 1, critical: 0 }, dependencies: 1 },
}

/** Starts a registry with `lib` 1.0.0 and 2.0.0, and `same` 1.0.0; every `lib` before 2.0.0 has a vulnerability. */
export const startRegistry = async (t: Test): Promise<PackageRegistry> => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { url = '/' } = request
    request.resume()
    asked.push(url)
    const send = (value: object, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    if (url.endsWith('/security/advisories/bulk'))
      return send({
        lib: [{ ...ADVISORY, url: 'https://example.org/7', cwe: [], cvss: { score: 7, vectorString: '' } }],
      })
    if (url.endsWith('/security/audits')) return send(audited)
    const versions = { lib: ['1.0.0', '2.0.0'], same: ['1.0.0'] }[url.slice(1)]
    if (!versions) return send({ error: 'not found' }, 404)
    const name = url.slice(1)
    return send({
      name,
      'dist-tags': { latest: versions.at(-1) },
      versions: Object.fromEntries(
        versions.map(version => [
          version,
          { name, version, dist: { tarball: `${base}/${name}/-/${name}-${version}.tgz`, shasum: 'a'.repeat(40) } },
        ]),
      ),
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async () => {
    if (!server.listening) return
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.teardown(close)
  return { url: `${base}/`, asked, close }
}
