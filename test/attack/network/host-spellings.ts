import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer as createWeb } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { Names } from '../../../sdk/node/network/names.js'
import { connectChecked, type NetworkRules } from '../../../sdk/node/network/policy.js'
import { EgressProxy } from '../../../sdk/node/network/proxy.js'
import { PAGE, PRIVATE, PUBLIC, hostOutside, ip } from './network-outside.js'

/** The hosts that answered, each with its kind of request. */
export interface Spellings {
  readonly tried: number
  /** With nothing allowed but names below one, also with `networkOnly`. */
  readonly reached: string[]
  /** What an allowed address, an allowed name and a public address answered. */
  readonly controls: string[]
}

const CANARY = 'canary-of-the-machine'
const BELOW = 'below.example'

/** A generator of numbers that gives the same ones in each run (mulberry32). */
const numbersOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

/** The spellings of an IPv4 address that some reader of addresses takes for it. */
const spelled = (address: string): string[] => {
  const [a, b, c, d] = address.split('.').map(Number) as [number, number, number, number]
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = [a, b, c, d].map(byte => byte.toString(16).padStart(2, '0')).join('')
  const six = `${hex.slice(0, 4)}:${hex.slice(4)}`
  return [
    address,
    [a, b, c, d].map(byte => `0${byte.toString(8)}`).join('.'),
    [a, b, c, d].map(byte => `0x${byte.toString(16)}`).join('.'),
    [a, b, c, d].map(byte => String(byte).padStart(4, '0')).join('.'),
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    String(whole),
    `0x${whole.toString(16)}`,
    `0${whole.toString(8)}`,
    `::ffff:${address}`,
    `::ffff:${six}`,
    `0:0:0:0:0:ffff:${six}`,
    `::${address}`,
    `64:ff9b::${address}`,
    `2002:${six}::`,
    [...address].map(char => `%${char.charCodeAt(0).toString(16)}`).join(''),
    [...address].map(char => (char === '.' ? '。' : String.fromCodePoint(char.charCodeAt(0) + 0xfee0))).join(''),
  ].flatMap(text => [text, `[${text}]`])
}

/** What may stand between the host that is meant and the one that is to be read. */
const JOINTS = [
  '%',
  '%25',
  '%00',
  '\0',
  '@',
  '#',
  '?',
  '/',
  '\\',
  ' ',
  '\t',
  '\r',
  '\n',
  ':80@',
  ':80#',
  '%2e',
  '%2f',
  ',',
].concat([
  ';',
  '&',
  '|',
  '^',
  '%eth0',
  '%lo',
  '..',
  '.',
  '。',
  '\u00ad',
  '\u200b',
  '-',
  '_',
  '!',
  '*',
  '"',
  "'",
  '`',
  '{',
  '~',
])

const hostsFor = (count: number): string[] => {
  const number = numbersOf(35)
  const one = <T>(list: readonly T[]): T => list[Math.floor(number() * list.length)]!
  const targets = [PRIVATE, '127.0.0.1', '0.0.0.0', '169.254.169.254']
    .flatMap(spelled)
    .concat(['localhost', 'near.other'])
  const made = Array.from({ length: count }, () => {
    const before = number() < 0.15 ? `x.${BELOW}${one(JOINTS)}` : ''
    const after =
      number() < 0.9 ? `${one(JOINTS)}${one(['', 'x.', 'a.b.'])}${one([BELOW, `.${BELOW}`, `${BELOW}.`])}` : ''
    const host = `${before}${one(targets)}${after}`
    return number() < 0.2 ? host.toUpperCase() : host
  })
  return [...new Set([...targets.map(each => `${each}%.${BELOW}`), ...targets, ...made])]
}

const attempt = async (base: string): Promise<Spellings> => {
  ip('link', 'set', 'lo', 'up')
  const names = join(base, 'hosts')
  writeFileSync(names, `127.0.0.1 localhost\n${PRIVATE} near.${BELOW} near.other\n`)
  execFileSync('mount', ['--bind', names, '/etc/hosts'])
  const outside = await hostOutside()
  const service = createWeb((_, answer) => answer.end(CANARY)).listen(80, '0.0.0.0')
  await once(service, 'listening')
  let rules: NetworkRules = { allow: [], only: false, listeners: [] }
  const looked = new Names()
  const stop = new AbortController()
  const proxy = new EgressProxy(target => connectChecked(target, rules, stop.signal, looked))
  const front = createServer({ allowHalfOpen: true }, socket => proxy.serve(socket)).listen(0, '127.0.0.1')
  await once(front, 'listening')
  const way = (front.address() as AddressInfo).port
  const say = (words: Buffer): Promise<string> =>
    new Promise(done => {
      let text = ''
      const socket = connect(way, '127.0.0.1', () => socket.write(words))
      socket.setTimeout(5000, () => socket.destroy())
      socket.on('data', piece => {
        text += piece.toString('latin1')
        if (text.includes(PAGE) || text.includes(CANARY)) socket.destroy()
      })
      socket.on('error', () => {}).on('close', () => done(text))
    })
  const request = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const kinds: { readonly [kind: string]: (host: string) => Buffer } = {
    socks: host => {
      const name = Buffer.from(host).subarray(0, 255)
      return Buffer.concat([
        Buffer.from([5, 1, 0, 5, 1, 0, 3, name.length]),
        name,
        Buffer.from([0, 80]),
        Buffer.from(request),
      ])
    },
    connect: host => Buffer.from(`CONNECT ${host}:80 HTTP/1.1\r\nHost: x\r\n\r\n${request}`),
    absolute: host => Buffer.from(`GET http://${host}:80/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    plain: host => Buffer.from(`GET http://${host}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
  }
  const answering = async (kind: string, host: string): Promise<string[]> => {
    const text = await say(kinds[kind]!(host))
    return text.includes(PAGE) || text.includes(CANARY) ? [`${kind} ${JSON.stringify(host)}`] : []
  }
  const hosts = hostsFor(Number(process.argv[3]))
  const reached: string[] = []
  for (const only of [false, true]) {
    rules = { allow: allowedOf([`*.${BELOW}`]), only, listeners: [{ host: '127.0.0.1', port: way }] }
    for (const host of hosts)
      reached.push(...(await Promise.all(Object.keys(kinds).map(kind => answering(kind, host)))).flat())
  }
  const controls: string[] = []
  for (const host of [`near.${BELOW}`, `NEAR.${BELOW}.`]) controls.push(...(await answering('socks', host)))
  rules = { allow: allowedOf([PRIVATE]), only: true, listeners: [] }
  for (const host of [PRIVATE, `[::ffff:${PRIVATE}]`]) controls.push(...(await answering('connect', host)))
  rules = { allow: [], only: false, listeners: [] }
  for (const host of [PUBLIC]) controls.push(...(await answering('absolute', host)))
  stop.abort()
  for (const server of [service, front]) server.close()
  outside.stdin!.end()
  return { tried: hosts.length, reached, controls }
}

// A program in its own networks, invisible to the machine.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(await attempt(process.argv[2]!)))
  process.exit()
}
