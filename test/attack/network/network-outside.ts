import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { Networks } from '../../../sdk/node/network/networks.js'
import { listEnv, ownProgram } from '../../../sdk/node/programs/run.js'
import { homeOfConversation } from '../../../sdk/node/wall/home.js'
import { runWalled, type WallKind, type WallSpec } from '../../../sdk/node/wall/wall.js'

/** The result of each kind of request: `page`, `canary`, or the beginning of the error. */
export interface Outside {
  readonly slirp: boolean
  readonly found: { readonly [what: string]: string }
}

export const PAGE = 'the page of a host outside'
const CANARY = 'canary-of-the-machine'
export const [MACHINE, PUBLIC, PRIVATE] = ['203.0.113.1', '203.0.113.10', '10.77.0.10']
const NAMES = `127.0.0.1 localhost\n${PUBLIC} public.example\n127.0.0.1 turned.example\n${PRIVATE} near.example\n`

/** Runs `ip`. */
export const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })

/** An outside host: a separate network at the other end of a veth pair. */
export const hostOutside = async () => {
  const child = spawn('unshare', ['--net', '--', process.execPath, fileURLToPath(import.meta.url), 'host'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child.stdout!, 'data')
  ip('link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1', 'netns', String(child.pid))
  for (const address of [`${MACHINE}/24`, '10.77.0.1/24']) ip('addr', 'add', address, 'dev', 'v0')
  ip('link', 'set', 'v0', 'up')
  child.stdin!.write('go\n')
  await once(child.stdout!, 'data')
  return child
}

/**
 * The program of that host: serves its page on port 80, and redirects to the requested port of the client's loopback.
 */
const serve = async (): Promise<void> => {
  console.log('there')
  await once(process.stdin, 'data')
  for (const address of [`${PUBLIC}/24`, `${PRIVATE}/24`]) ip('addr', 'add', address, 'dev', 'v1')
  for (const link of ['lo', 'v1']) ip('link', 'set', link, 'up')
  const server = createServer(({ url = '' }, answer) => {
    const port = /^\/to\/(\d+)$/.exec(url)?.[1]
    if (port) answer.writeHead(302, { location: `http://127.0.0.1:${port}/` })
    answer.end(PAGE)
  }).listen(80, '0.0.0.0')
  await once(server, 'listening')
  process.stdin.once('end', () => process.exit())
  console.log('serving')
}

const world = async (kind: WallKind, base: string): Promise<Outside> => {
  ip('link', 'set', 'lo', 'up')
  const names = join(base, 'hosts')
  writeFileSync(names, NAMES)
  execFileSync('mount', ['--bind', names, '/etc/hosts'])
  const outside = await hostOutside()
  const [workspace, data, resolver] = [join(base, 'w'), join(base, 'd'), join(base, 'resolv.conf')]
  for (const folder of [workspace, data]) mkdirSync(folder)
  writeFileSync(resolver, 'nameserver 192.0.2.3\n')
  const service = createServer((_, answer) => answer.end(CANARY)).listen(0, '0.0.0.0')
  await once(service, 'listening')
  const { port } = service.address() as AddressInfo
  const now = { allow: [] as string[], only: false }
  const networks = new Networks({
    log: { warn: console.error },
    busy: () => true,
    owner: () => ({
      rules: async () => ({ allow: allowedOf(now.allow), only: now.only, listeners: [] }),
      refused: () => {},
      taken: () => {},
      resolver: async () => resolver,
    }),
  })
  const spec: WallSpec = {
    workspace,
    data,
    cwd: workspace,
    env: listEnv(),
    home: await homeOfConversation(data, 'c'),
    network: { enter: () => networks.enter('c') },
  }
  const found: { [what: string]: string } = {}
  const ask = async (what: string, url: string, ...more: string[]) => {
    const { stdout, stderr } = await runWalled(spec, 'curl', ['-sSL', '-m', '5', ...more, url], {}, kind)
    const text = stdout.toString()
    const why = text.includes('is not reached from this conversation')
      ? 'not reached'
      : (/\((\d+)\)/.exec(stderr)?.[0] ?? text.slice(0, 40))
    found[what] = text === PAGE ? 'page' : text === CANARY ? 'canary' : why
  }
  const direct = ['--noproxy', '*']
  const rules = (allow: string[], only = false) => {
    Object.assign(now, { allow, only })
    return networks.update()
  }
  await ask('public, forwarded', `http://${PUBLIC}/`)
  await ask('public, by name', 'http://public.example/')
  await ask('public, through CONNECT', `http://${PUBLIC}/`, '-p')
  await ask('public, through SOCKS by name', 'http://public.example/', '-x', 'socks5h://127.0.0.1:18999')
  await ask('public, direct', `http://${PUBLIC}/`, ...direct)
  await ask('public, direct by name', 'http://public.example/', ...direct)
  await ask('private', `http://${PRIVATE}/`)
  await ask('private, direct', `http://${PRIVATE}/`, ...direct)
  await ask('private, by name', 'http://near.example/')
  await ask('the machine at its public address', `http://${MACHINE}:${port}/`)
  await ask('the machine at its public address, direct', `http://${MACHINE}:${port}/`, ...direct)
  await ask('the machine at its private address, direct', `http://10.77.0.1:${port}/`, ...direct)
  await ask('a name of the machine', `http://turned.example:${port}/`)
  await ask('led to the machine', `http://${PUBLIC}/to/${port}`, '--noproxy', '')
  await rules(['*.example', PRIVATE])
  await ask('allowed: private', `http://${PRIVATE}/`)
  await ask('allowed: private, by name', 'http://near.example/')
  await ask('allowed: private, direct', `http://${PRIVATE}/`, ...direct)
  await ask('allowed: a name of the machine', `http://turned.example:${port}/`)
  await rules(['public.example:80'], true)
  await ask('only: by its name', 'http://public.example/')
  await ask('only: by its address', `http://${PUBLIC}/`)
  await ask('only: direct', `http://${PUBLIC}/`, ...direct)
  await rules([])
  await ask('again: public', `http://${PUBLIC}/`)
  await ask('again: public, direct', `http://${PUBLIC}/`, ...direct)
  networks.close()
  service.close()
  outside.stdin!.end()
  return { slirp: (await ownProgram('slirp4netns')) !== undefined, found }
}

// A program in its own networks, invisible to the machine.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , kind = 'bwrap', base = ''] = process.argv
  if (kind === 'host') await serve()
  else console.log(JSON.stringify(await world(kind as WallKind, base)))
}
