import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findChromium } from '../../../plugins/system/browsers/chromium.js'
import type { BrowserAct, BrowserActed } from '../../../plugins/system/contract.js'
import type { Reply } from '../../../sdk/contract.js'
import type { Api } from '../../../sdk/api.js'
import type { Support } from '../daemon.js'

/** Chromium without windows, which does up to half less for the same page (Debian: chromium-headless-shell). */
export const HEADLESS = '/usr/bin/chromium-headless-shell'

const MISSING = (await findChromium()) === undefined && !process.env.CI

/** The options of a test that needs a real browser: skipped where there is none, except in CI. */
export const withChromium = (): { skip?: string } =>
  MISSING ? { skip: 'this machine has no chromium (Debian: apt-get install chromium)' } : {}

/**
 * Has the sandbox start Chromium without windows, where it is installed. What the sandbox shields from pages is tested
 * with the full one.
 */
export const withoutWindows = (t: Pick<Test, 'teardown'>): void => {
  if (process.env.SANDBOX_CHROMIUM !== undefined || !existsSync(HEADLESS)) return
  process.env.SANDBOX_CHROMIUM = HEADLESS
  t.teardown(() => delete process.env.SANDBOX_CHROMIUM)
}

/** The answer of a page server: HTML, or a function that writes it. */
export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void)

export interface Site {
  readonly url: string
  readonly port: number
  /** Every request it received, `METHOD /path`. */
  readonly heard: string[]
  readonly server: Server
}

/** Pages for tests. */
export const PAGES: { readonly [path: string]: Page } = {
  '/': '<title>Home</title><h1>Hello</h1><p hidden>unseen</p><a href="/two">go</a>',
  '/two': '<title>Two</title>the second page',
  '/hang': '<title>Hang</title><script>setTimeout(() => { for (;;); })</script>',
  '/file': (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/zip', 'content-disposition': 'attachment' }).end('PK'),
}

/** A web server with pages by path. */
export const siteOf = async (
  t: Pick<Test, 'teardown'>,
  pages: { readonly [path: string]: Page },
  host = '127.0.0.1',
): Promise<Site> => {
  const heard: string[] = []
  const server = createServer((request, response) => {
    heard.push(`${request.method} ${request.url}`)
    const page = pages[URL.parse(request.url ?? '', 'http://x')?.pathname ?? '']
    if (typeof page === 'function') return page(request, response)
    response
      .writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
      .end(page ?? 'nothing here')
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://${host}:${port}`, port, heard, server }
}

/** Acts on the browser `web-a` as a person does. */
export const act = (
  { client }: Pick<Support, 'client'>,
  action: BrowserAct['action'],
  more: Partial<BrowserAct> = {},
): Promise<BrowserActed> => client.call('POST /system/browsers/{name}/page', { name: 'web-a', action, ...more })

/** The parent of the profile folders of browsers without sign-ins. */
export const freshOf = ({ data }: { readonly data: string }): string => join(data, 'system', 'browsers', 'fresh')

/** Polls a condition of the machine that no event announces. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise(resolve => setTimeout(resolve, 20))
}

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:agent', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A call made by another group. */
export const between = <C extends (`browsers.${string}` | 'members.present') & keyof Api>(
  { kernel }: Pick<Support, 'kernel'>,
  call: C,
  input: object = {},
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input, AS) as Promise<Reply<Api, C>>

/** The processes of the machine whose command line contains a word. */
export const processesWith = (word: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(word) ? [Number(name)] : []
      } catch {
        return []
      }
    })

/** The loopback ports that these processes or their descendants listen on. */
export const portsOf = (pids: readonly number[]): number[] => {
  const sockets = new Set(
    pids.flatMap(pid => {
      try {
        return readdirSync(`/proc/${pid}/fd`).flatMap(
          fd => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
        )
      } catch {
        return []
      }
    }),
  )
  return ['tcp', 'tcp6'].flatMap(table =>
    readFileSync(`/proc/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .flatMap(line => {
        const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
        return state === '0A' && sockets.has(inode) ? [Number.parseInt(local.split(':')[1]!, 16)] : []
      }),
  )
}
