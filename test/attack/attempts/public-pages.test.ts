import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { RunningDaemon } from '../../support/daemon.js'
import { spread } from '../../support/lists.js'
import { meantInClear } from '../../support/secret-search.js'
import { runTurn } from '../../support/turns.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { askPage, pathOfUrl } from '../../plugins/outbox/support.js'
import { daemonOf } from '../network/user-daemon.js'
import { walled } from '../support.js'
import { USERS } from '../users.js'

t.setTimeout(600_000)

const VALUE = 'tr0ub4dor_and-more_words'
const KEYS = [
  VALUE,
  randomBytes(30).toString('base64').replace(/.{3}$/, 'aB1'),
  'AKIAIOSFODNN7EXAMPLE',
  'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
  'postgres://ada:hunter2hunter2@db/x',
]

/** Every way in which a text keeps a value apart that its reader sees whole. */
const SPLITS: { readonly [way: string]: (value: string, at: number) => string } = {
  strong: (value, at) => `${value.slice(0, at)}**${value.slice(at)}**`,
  'strong first': (value, at) => `**${value.slice(0, at)}**${value.slice(at)}`,
  emphasis: (value, at) => `*${value.slice(0, at)}*${value.slice(at)}`,
  deleted: (value, at) => `~~${value.slice(0, at)}~~${value.slice(at)}`,
  code: (value, at) => `\`${value.slice(0, at)}\`${value.slice(at)}`,
  'code twice': (value, at) => `\`${value.slice(0, at)}\`\`\`\`${value.slice(at)}\`\`\``,
  'two links': (value, at) => `[${value.slice(0, at)}](https://a.example)[${value.slice(at)}](https://b.example)`,
  escapes: value => value.replace(/[^A-Za-z0-9]/g, '\\$&'),
  'one escape': (value, at) => `${value.slice(0, at)}\\${value.slice(at)}`,
  'a heading': value => `# ${value.replace(/[^A-Za-z0-9]/g, '\\$&')}`,
  'a list': value => `- ${value.replace(/[^A-Za-z0-9]/g, '\\$&')}`,
  'a quote': value => `> ${value.replace(/[^A-Za-z0-9]/g, '\\$&')}`,
  'the address of a link': value => `[x](https://a.example/${value.replace(/[^A-Za-z0-9]/g, '\\$&')})`,
  'the title of a picture': value => `![${value.replace(/[^A-Za-z0-9]/g, '\\$&')}](https://a.example/x.png)`,
  ...Object.fromEntries(
    ['\u200b', '\u00ad', '\u2060', '\u202e', '\ufe00', '\u{e0041}', '\u180e', '\ufeff'].map(char => [
      `U+${char.codePointAt(0)!.toString(16)}`,
      (value: string, at: number) => value.slice(0, at) + char + value.slice(at),
    ]),
  ),
}

/** The characters of a page as its reader sees them, and its addresses. */
const seenOf = (html: string): string =>
  [html.replace(/<[^>]*>/g, ''), ...html.matchAll(/ href="([^"]*)"/g)]
    .join('\n')
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

const settled = async (daemon: RunningDaemon): Promise<void> => {
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await daemon.client.call('POST /secrets', { key: 'HOOK', value: VALUE })
}
const own = (uid: number, path: string) => chownSync(path, uid, uid)

/** Puts a file of the user into the workspace, with the folders above it. */
const lay = (uid: number, workspace: string, path: string, text: string | Buffer = 'text\n'): void => {
  const at = join(workspace, path)
  mkdirSync(dirname(at), { recursive: true })
  writeFileSync(at, text)
  execFileSync('chown', ['-R', `${uid}:${uid}`, join(workspace, path.split('/')[0]!)])
}

const shares = async (t: Test, daemon: RunningDaemon) => {
  const { client, url } = daemon
  const cases = KEYS.flatMap(value =>
    Object.entries(SPLITS).flatMap(([way, split]) =>
      [3, Math.floor(value.length / 2), value.length - 2].map(at => ({
        value,
        about: `${way} at ${at}`,
        text: split(value, at),
      })),
    ),
  )
  // In the path of an address a key without a mark is none: paths look so.
  const tried = spread(
    cases.filter(({ value, about }) => value !== KEYS[1] || !about.startsWith('the address')),
    90,
  )
  // A prompt of its own words, so that no command of the agent is in the way.
  await runTurn(client, 'splits', tried.map(({ text }) => `say ${text}`).join('\n'), { agent: 'script' })
  await runTurn(client, 'names', `write ${VALUE}.txt\n| x\nrun ls ${VALUE}.txt\nsay done`, { agent: 'script' })
  meantInClear(daemon, `workspace: ${VALUE}.txt`, 'the turn named it so')
  for (const [conversationId, title] of [
    ['splits', 'Splits'],
    ['names', `About ${VALUE.slice(0, 5)}\u200b${VALUE.slice(5)}`],
  ] as const) {
    const asked = { conversationId, title, detail: 'everything' } as const
    const preview = await client.call('POST /share/preview', asked)
    const share = await client.call('POST /share', asked)
    const { body, headers } = await askPage(url, pathOfUrl(share.url))
    const html = body.toString()
    t.equal(html, preview.html, `${conversationId}: the preview is the page`)
    const seen = seenOf(html)
    const shown = KEYS.filter(
      value => seen.includes(value) || share.title.includes(value) || share.url!.includes(value),
    )
    t.same(
      shown.flatMap(value =>
        tried.filter(one => one.value === value && seen.includes(value)).map(({ about }) => about),
      ),
      [],
      `${conversationId}: no value is whole`,
    )
    t.same(shown, [], conversationId)
    t.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'.*sandbox/)
    // Whoever has the address can read the page: links do not pass it on, and caches ask before they answer.
    t.match(headers, { 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', 'x-robots-tag': 'noindex' })
    t.notOk(headers['set-cookie'])
    await client.call('POST /share/remove', { id: share.id })
    await gone(t, url, pathOfUrl(share.url), String(headers.etag), 'a removed page')
  }
}

/** Every conditional and partial request of what is not served any more, or not yet. */
const gone = async (t: Test, url: string, path: string, etag: string, about: string): Promise<void> => {
  const guess = await askPage(url, `${path.split('/').slice(0, 2).join('/')}/nowhere/`)
  for (const headers of [
    {},
    { method: 'HEAD' },
    { range: 'bytes=0-3' },
    { range: 'bytes=999999999-' },
    { range: 'bytes=0-3', 'if-range': etag },
    { 'if-none-match': etag },
    { 'if-none-match': '*' },
    { 'if-modified-since': new Date(Date.now() + 1e9).toUTCString() },
    { 'if-match': '"x"' },
    { 'if-unmodified-since': new Date(0).toUTCString() },
    { 'x-original-url': path, 'x-http-method-override': 'GET' },
    { accept: 'text/html', origin: 'https://evil.example' },
  ]) {
    const { status, body, headers: sent } = await askPage(url, path, headers)
    const is = `${about}: ${JSON.stringify(headers)}`
    t.equal(status, 404, is)
    t.notOk(sent.etag ?? sent['content-range'] ?? sent['set-cookie'], is)
    t.equal(sent['cache-control'], 'no-store', is)
    if (!('method' in headers || 'accept' in headers)) t.same(body, guess.body, is)
  }
}

const NAMES = [
  ...[
    'a..b.txt',
    '...',
    '..x',
    'a.',
    'a ',
    ' a',
    'a%2f..%2fb',
    '%00',
    '%2e%2e',
    'a\u202etxt.exe',
    'a\u2066b',
    'a\u00adb',
  ],
  ...[
    'x'.repeat(255),
    'ä'.repeat(127),
    'a?b#c',
    'a;b',
    "a'b",
    'a"b',
    'a&b',
    '<b>',
    'con',
    'nul.txt',
    '~',
    '-rf',
    'a:b',
    '*',
  ],
  ...[
    'back\\slash',
    'line\nbreak',
    'tab\t',
    'bell\u0007',
    'del\u007f',
    '.hidden',
    'id_rsa',
    'server.key',
    'x.PEM',
    'A.P12',
  ],
  ...[
    'server.key.bak',
    'id_ed25519~',
    'store.p12.old',
    'server.pem.',
    'key.pfx ',
    'id_rsa.swp',
    'x.kdbx.orig',
    '_netrc.save',
  ],
]
const NEVER = /[\\\n\t\u0007\u007f]|^\.|^(?:id_rsa|id_ed25519|_netrc)|\.(?:key|pem|p12|pfx|kdbx)\b/i

/** Types of files that a browser runs, or that it may take for another one. */
const ACTIVE: { readonly [name: string]: string } = {
  'page.html': '<script>document.title = 1</script>',
  'page.xhtml': '<html xmlns="http://www.w3.org/1999/xhtml"><script>1</script></html>',
  'picture.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>',
  'page.xml': '<?xml-stylesheet href="x.xsl"?><a/>',
  'sw.js': 'self.onfetch = () => {}',
  'picture.png': '<script>1</script>',
  noending: '<script>1</script>',
  'words.txt': '<script>1</script>',
  'page.mht': 'MIME-Version: 1.0',
  'page.swf': 'FWS',
}

const published = async (t: Test, daemon: RunningDaemon, uid: number) => {
  const { client, url, workspace } = daemon
  for (const name of NAMES) lay(uid, workspace, `names/${name}`, `${name} holds this`)
  for (const [name, text] of Object.entries(ACTIVE)) lay(uid, workspace, `names/${name}`, text)
  lay(uid, workspace, 'names/deep/secret.txt', `it is ${KEYS[2]}`)
  symlinkSync('/etc/passwd', join(workspace, 'names/out'))
  symlinkSync('deep', join(workspace, 'names/up'))
  execFileSync('mkfifo', [join(workspace, 'names/pipe')])
  const { blocked } = await client.call('POST /public/publish', { path: 'names' })
  const slot = (await client.call('GET /public', {})).url!.split('/').at(-1)!
  const never = NAMES.filter(name => NEVER.test(name))
  t.same(
    blocked.map(({ path }) => path).sort(),
    [...never, '...', '..x', 'deep/secret.txt', 'out', 'pipe', 'up']
      .filter((one, at, all) => all.indexOf(one) === at)
      .sort(),
  )
  for (const name of [...NAMES.filter(name => !NEVER.test(name) && !name.startsWith('.')), ...Object.keys(ACTIVE)]) {
    const { status, body, headers } = await askPage(url, `/p/${slot}/names/${encodeURIComponent(name)}`)
    t.same([status, body.toString()], [200, ACTIVE[name] ?? `${name} holds this`], name)
    t.match(headers['content-security-policy'], /^sandbox (?!.*allow-same-origin)/, name)
    t.notMatch(headers['content-security-policy'], /allow-(?:same-origin|top-navigation)/, name)
    t.match(
      headers,
      { 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache', 'x-robots-tag': 'noindex' },
      name,
    )
    t.notOk(headers['set-cookie'] ?? headers['service-worker-allowed'], name)
    t.notMatch(JSON.stringify(headers), /[\u202e\u2066]/, name)
  }
  const first = await askPage(url, `/p/${slot}/names/words.txt`)
  for (const name of [...spread(never, 12), 'deep/secret.txt', 'out', 'pipe', 'up/secret.txt'])
    await gone(t, url, `/p/${slot}/names/${name.split('/').map(encodeURIComponent).join('/')}`, '"x"', name)
  // A link of another kind, and what a turn writes, take the place of a published file.
  const at = join(workspace, 'public/names/words.txt')
  const places: { readonly [what: string]: () => void } = {
    'a link': () => symlinkSync('/etc/passwd', at),
    'a hard link to another file': () => linkSync(join(workspace, 'names/deep/secret.txt'), at),
    'other bytes': () => writeFileSync(at, 'other bytes of this l'.slice(0, first.body.length)),
    'a folder': () => mkdirSync(at),
    'a pipe': () => execFileSync('mkfifo', [at]),
  }
  for (const [what, put] of Object.entries(places)) {
    rmSync(at, { recursive: true, force: true })
    put()
    await gone(t, url, `/p/${slot}/names/words.txt`, String(first.headers.etag), what)
  }
  rmSync(at, { recursive: true })
  writeFileSync(at, first.body)
  own(uid, at)
  t.equal((await askPage(url, `/p/${slot}/names/words.txt`)).status, 200, 'the published bytes are served again')
  await runTurn(
    client,
    'writes',
    'run echo evil > public/names/words.txt; echo evil > public/names/more.txt; ls public',
    {
      agent: 'script',
    },
  )
  t.equal(readFileSync(at, 'utf8'), 'evil\n', 'a turn writes there')
  for (const name of ['words.txt', 'more.txt'])
    await gone(t, url, `/p/${slot}/names/${name}`, String(first.headers.etag), `${name} of a turn`)
  await client.call('POST /public/unpublish', { path: 'names/noending' })
  await gone(t, url, `/p/${slot}/names/noending`, '"x"', 'a withdrawn file')
}

/** Swaps a file or folder for a link to something outside while it is published again and again. */
const swaps = async (t: Test, daemon: RunningDaemon, uid: number) => {
  const { client, url, workspace } = daemon
  const outside = join(dirname(workspace), 'outside')
  mkdirSync(outside)
  for (const name of ['f.txt', 'deep/f.txt']) lay(uid, dirname(workspace), `outside/${name}`, 'OUTSIDE')
  lay(uid, workspace, 'swap/deep/f.txt', 'inside')
  lay(uid, workspace, 'swap/f.txt', 'inside')
  const swap = (path: string, to: string) =>
    `mv -T ${path} ${path}.away; ln -s ${to} ${path}; rm -f ${path}; mv -T ${path}.away ${path};`
  const loop = spawn(
    'sh',
    [
      '-c',
      `while :; do ${swap('swap/f.txt', join(outside, 'f.txt'))} ${swap('swap/deep', join(outside, 'deep'))} done`,
    ],
    { cwd: workspace, stdio: 'ignore', ...(uid !== process.getuid?.() && { uid, gid: uid }) },
  )
  let served = 0
  try {
    for (let round = 0; round < 60; round++) {
      const path = ['swap', 'swap/f.txt', 'swap/deep', 'swap/deep/f.txt'][round % 4]!
      const made = await client.call('POST /public/publish', { path, as: 'swapped' }).catch(() => undefined)
      if (!made) continue
      served += 1
      const { files } = await client.call('GET /public', {})
      for (const file of files.filter(({ path }) => path.startsWith('swapped'))) {
        if (file.url === undefined) continue
        const { body } = await askPage(url, pathOfUrl(file.url))
        if (body.toString() !== 'inside') t.fail(`${path}: ${body.toString().slice(0, 80)}`)
      }
    }
  } finally {
    loop.kill('SIGKILL')
  }
  t.ok(served > 5, `${served} of 60 were published`)
}
for (const [user, uid] of USERS) {
  t.test(`${user}: no value leaves in a shared page, and a removed one answers nothing`, walled(), async t => {
    const daemon = await daemonOf(t, uid, {})
    await settled(daemon)
    await shares(t, daemon)
  })
  t.test(`${user}: only what was published is served, under every name and request`, walled(), async t => {
    const daemon = await daemonOf(t, uid, {})
    await published(t, daemon, uid)
    await swaps(t, daemon, uid)
    t.match(await refusalOf(() => daemon.client.call('POST /public/publish', { path: 'names/out' })), { status: 400 })
  })
}
