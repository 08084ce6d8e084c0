import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import type { Test } from 'tap'
import { pack } from 'tar-stream'
import { project } from '../support/browser/page.js'

interface Locked {
  readonly version: string
  readonly [field: string]: unknown
}

/** Every file of an installed package, except the sources of its native part. */
const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath, entry.name)))
    .filter(
      name =>
        !/^node_modules\//.test(name)
        && !/^(deps|src)\//.test(name)
        && (!/^build\//.test(name) || name.endsWith('.node')),
    )

const packed = (folder: string): Promise<Buffer> => {
  const tar = pack()
  for (const name of filesOf(folder)) {
    const file = join(folder, name)
    tar.entry({ name: `package/${name}`, mode: statSync(file).mode & 0o777 }, readFileSync(file))
  }
  tar.finalize()
  return buffer(tar.pipe(createGzip({ level: 0 })))
}

const lock = () =>
  JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as { packages: { [folder: string]: Locked } }

/** A registry with exactly the packages that are installed here, including native parts. */
export const registry = async (t: Test): Promise<string> => {
  const versions = new Map<string, Map<string, { folder: string; locked: Locked }>>()
  for (const [folder, locked] of Object.entries(lock().packages)) {
    const name = folder.split('node_modules/').at(-1)!
    if (name)
      versions.set(
        name,
        new Map([...(versions.get(name) ?? []), [locked.version, { folder: join(project, folder), locked }]]),
      )
  }
  const server = createServer(async (request, response) => {
    const [, name = '', , version] =
      /^\/((?:@[^/]+\/)?[^/]+)(\/-\/(.+)\.tgz)?$/.exec(decodeURIComponent(request.url!)) ?? []
    const known = versions.get(name)
    if (!known || (version !== undefined && !known.has(version))) return void response.writeHead(404).end('{}')
    if (version !== undefined) return void response.end(await packed(known.get(version)!.folder))
    const described = [...known].map(([version, { folder, locked }]) => {
      const own = existsSync(folder)
        ? (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object)
        : { name, ...locked }
      return [version, { ...own, dist: { tarball: `http://${request.headers.host}/${name}/-/${version}.tgz` } }]
    })
    response.end(
      JSON.stringify({ name, 'dist-tags': { latest: described.at(-1)![0] }, versions: Object.fromEntries(described) }),
    )
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
