import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ConversationAuthority } from '../../../plugins/agent/secrets/conversation-authority.js'
import { folderOf, inGit } from '../daemon.js'

/** A request as the server received it. */
export interface GitRequest {
  readonly path: string
  readonly authorization?: string
}

/** How a git server behaves. */
export interface GitServerOptions {
  /** The required credentials, as `user:password`; requests without them get 401. */
  readonly needs?: string
  /** Over TLS, with certificates of this authority. */
  readonly secure?: ConversationAuthority
  /** Answers instead of git; false: git answers. */
  readonly instead?: (asked: IncomingMessage, answer: ServerResponse) => boolean
}

/** A server of bare repositories over HTTP, with git's own `http-backend` behind it. */
export const gitServer = async (t: Pick<Test, 'teardown'>, folder: string, options: GitServerOptions = {}) => {
  const { needs, secure, instead } = options
  const backend = join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git-http-backend')
  const requests: GitRequest[] = []
  const serve = (asked: IncomingMessage, answer: ServerResponse): void => {
    const { pathname, search, searchParams } = new URL(asked.url!, 'http://server')
    const { authorization } = asked.headers
    requests.push({ path: pathname, ...(authorization !== undefined && { authorization }) })
    if (instead?.(asked, answer)) return
    if (needs !== undefined && authorization !== `Basic ${Buffer.from(needs).toString('base64')}`)
      return void answer.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    const child = spawn(backend, [], {
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'http.receivepack',
        GIT_CONFIG_VALUE_0: 'true',
        REQUEST_METHOD: asked.method,
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: asked.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: asked.headers['content-encoding'] ?? '',
        HTTP_GIT_PROTOCOL: String(asked.headers['git-protocol'] ?? ''),
        REMOTE_USER: searchParams.get('user') ?? 'someone',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    child.stdin.on('error', () => {})
    asked.pipe(child.stdin)
    void relayed(child.stdout, answer)
  }
  const server = secure ? secureServer(secure, serve) : createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http${secure ? 's' : ''}://localhost:${port}`, port, requests, folder }
}

const secureServer = (
  authority: ConversationAuthority,
  serve: (asked: IncomingMessage, answer: ServerResponse) => void,
) =>
  createSecureServer(
    {
      SNICallback: (name, done) =>
        void authority.contextOf(name).then(
          context => done(null, context),
          (error: unknown) => done(error as Error),
        ),
    },
    serve,
  )

/** Forwards the answer of a CGI program: headers, an empty line, the body. */
const relayed = async (output: AsyncIterable<Buffer>, answer: ServerResponse): Promise<void> => {
  let head = Buffer.alloc(0)
  for await (const piece of output) {
    if (answer.headersSent) {
      answer.write(piece)
      continue
    }
    head = Buffer.concat([head, piece])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) continue
    const headers = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map(line => line.split(': ', 2) as [string, string])
    const status = headers.find(([name]) => name === 'Status')?.[1]
    answer.writeHead(Number.parseInt(status ?? '200', 10), Object.fromEntries(headers))
    answer.write(head.subarray(end + 4))
  }
  answer.end()
}

/** Makes a bare clone of a repository. */
export const bareCopy = (from: string, to: string): void => {
  inGit(join(from, '..'), 'clone', '-q', '--bare', from, to)
}

/** Commits everything in a repository, and returns the commit. */
export const committed = (repository: string, message = 'change'): string => {
  inGit(repository, 'add', '-A')
  inGit(repository, 'commit', '-q', '--allow-empty', '-m', message)
  return inGit(repository, 'rev-parse', 'HEAD').trim()
}

/** An authority whose certificates this process, and git that it starts, trust until the end of the test. */
export const trustedAuthority = async (t: Test): Promise<ConversationAuthority> => {
  const authority = await ConversationAuthority.make()
  const trusted = join(folderOf(t), 'authority.pem')
  writeFileSync(trusted, authority.certificate)
  process.env.SSL_CERT_FILE = trusted
  t.teardown(() => delete process.env.SSL_CERT_FILE)
  return authority
}

/** Answers every request with a redirect to the same path below another address. */
export const redirectTo =
  (address: string) =>
  (asked: IncomingMessage, answer: ServerResponse): boolean => {
    const { search } = new URL(asked.url!, 'http://server')
    answer.writeHead(302, { location: `${address}/info/refs${search}` }).end()
    return true
  }

/** The running processes, without this one, that have one of these texts among their arguments or variables. */
export const processesShowing = (...texts: string[]): string[] =>
  readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    return ['cmdline', 'environ'].some(file => {
      try {
        const found = readFileSync(`/proc/${pid}/${file}`, 'utf8')
        return texts.some(text => found.includes(text))
      } catch {
        return false
      }
    })
  })
