import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { inGit } from './daemon.js'

/** What a git server was asked with. */
export interface GitServer {
  readonly url: string
  /** The `authorization` of each request. */
  readonly credentials: (string | undefined)[]
}

/** Serves the repositories of a folder over HTTP, with git's own program. */
export const gitServer = async (t: Pick<Test, 'teardown'>, folder: string): Promise<GitServer> => {
  const credentials: (string | undefined)[] = []
  const server = createServer((request, response) => {
    credentials.push(request.headers.authorization)
    const { pathname, searchParams } = new URL(request.url!, 'http://git')
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: '1',
        REQUEST_METHOD: request.method,
        PATH_INFO: pathname,
        QUERY_STRING: searchParams.toString(),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      },
    })
    const output: Buffer[] = []
    request.pipe(child.stdin)
    child.stdin.on('error', () => {})
    child.stdout.on('data', (piece: Buffer) => output.push(piece))
    child.once('close', () => {
      const answer = Buffer.concat(output)
      const end = answer.indexOf('\r\n\r\n')
      for (const line of answer.subarray(0, end).toString().split('\r\n')) {
        const [name = '', value = ''] = line.split(': ')
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
        else response.setHeader(name, value)
      }
      response.end(answer.subarray(end + 4))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credentials }
}

/** Commits everything in a repository, and answers the commit. */
export const committed = (repository: string, message = 'change'): string => {
  inGit(repository, 'add', '-A')
  inGit(repository, 'commit', '-q', '--allow-empty', '-m', message)
  return inGit(repository, 'rev-parse', 'HEAD').trim()
}
