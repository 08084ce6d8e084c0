import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openvpnConf } from '../../../sdk/node/tunnels/openvpn-conf.js'
import { ownProgram } from '../../../sdk/node/programs/own-programs.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { add } from '../../plugins/vpn/support.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { USERS } from '../users.js'

const program = await ownProgram('openvpn')
const openssl = await ownProgram('openssl')
const needed = () => ({ skip: !process.env.CI && !(program && openssl) && 'this machine has no openvpn or no openssl' })

const TAGS = ['ca', 'cert', 'key', 'tls-auth', 'tls-crypt', 'extra-certs', 'connection']
const HEAD = 'client\ndev tun\nproto udp\nremote 127.0.0.1 11949\nnobind\n'

/** Every spelling of one directive that two readers of a configuration may take differently. */
const spellings = (hidden: string, pem: string): Map<string, string> => {
  const found = new Map<string, string>()
  const block = (tag: string, end = `</${tag}>`) =>
    `<${tag}>\n${tag === 'connection' ? 'remote 127.0.0.1' : pem}\n${end}\n`
  const ends = [
    'x',
    ' x',
    '\tx',
    '#',
    ';',
    '"',
    '\\',
    '</TAG>',
    '\u00a0',
    '\v',
    '\f',
    '\r',
    '\u2028',
    '\ufeff',
    '\u0085',
    '>',
    '\0',
  ]
  for (const tag of TAGS) {
    for (const after of ends)
      for (const before of ['', '\t', '\v', '\u00a0']) {
        const end = `${before}</${tag}>${after.replace('TAG', tag)}`
        const again = tag === 'extra-certs' ? 'ca' : 'extra-certs'
        const text = `${HEAD}${block(tag, end)}${hidden}\n<${again}>\n</${tag}>\n${block(again)}`
        found.set(`${tag} ends with ${JSON.stringify(end)}`, text)
      }
    for (const start of [
      `"<${tag}>"`,
      `'<${tag}>'`,
      `\\<${tag}>`,
      `<${tag}> #`,
      `<${tag}> x`,
      `<${tag}`,
      `--<${tag}>`,
      `<${tag.toUpperCase()}>`,
    ])
      found.set(
        `${tag} begins with ${start}`,
        `${HEAD}${start}\n${pem}\n</${tag}>\n${hidden}\n<${tag}>\n${pem}\n</${tag}>\n`,
      )
    found.set(`a directive within <${tag}>`, `${HEAD}<${tag}>\n${pem}\n${hidden}\n</${tag}>\n`)
    found.set(
      `a block within <${tag}>`,
      `${HEAD}<${tag}>\n<ca>\n</${tag}>\n${hidden}\n<${tag}>\n</ca>\n${pem}\n</${tag}>\n`,
    )
  }
  const [name = '', ...rest] = hidden.split(' ')
  const value = rest.join(' ')
  for (const spelling of [
    ...[`"${name}" ${value}`, `'${name}' "${value}"`, `--${name} ${value}`, ` \t${name} ${value}`, `${name}\t${value}`],
    ...[
      `\\${name} ${value}`,
      `${name[0]}\\${name.slice(1)} ${value}`,
      `${name.toUpperCase()} ${value}`,
      `"" ${hidden}`,
    ],
    ...[`nobind\r${hidden}`, `nobind \\\n${hidden}`, `# x\r${hidden}`, `# x \\\n${hidden}`, `nobind;\n${hidden}`],
    ...[
      `nobind\v${hidden}`,
      `\v${hidden}`,
      `\f${hidden}`,
      `\ufeff${hidden}`,
      `\u00a0${hidden}`,
      `nobind\u2028${hidden}`,
    ],
    ...[`remote "a\n${hidden}\n"`, `remote 'a\n${hidden}\n'`, `remote a"\n${hidden}\n"`, `remote a\0\n${hidden}`],
    ...[`remote "a"${hidden}`, `remote ${'a'.repeat(248)}${hidden}`, `remote ${'a'.repeat(249)}\t${hidden}`],
    ...[`#${'a'.repeat(254)}${hidden}`, `#${'a'.repeat(255)}${hidden}`, `#${'a'.repeat(256)}${hidden}`],
    ...[
      `;${' '.repeat(255)}${hidden}`,
      `setenv opt ${hidden}`,
      `push "${hidden}"`,
      `ignore-unknown-option x\n${hidden}`,
    ],
  ])
    for (const head of [`${HEAD}${spelling}\n`, `${spelling}\n${HEAD}`])
      found.set(JSON.stringify(spelling + head.length), head)
  return found
}

t.test('no spelling of a directive reaches openvpn that the sandbox refuses when it is plain', needed(), t => {
  const folder = folderOf(t)
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=x']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject], { stdio: 'ignore' })
  const pem = readFileSync(cert, 'utf8').trim()
  const [config, included, mark] = ['c.ovpn', 'included.ovpn', 'mark'].map(name => join(folder, name))
  writeFileSync(included!, `log-append ${mark}\n`)
  /** Whether openvpn itself, which ends at the option behind the file, acted on the hidden directive. */
  const acts = (text: string): boolean => {
    rmSync(mark!, { force: true })
    writeFileSync(config!, text)
    spawnSync(program!, ['--config', config!, '--no-such-option'], { stdio: 'ignore', cwd: folder, timeout: 10_000 })
    return existsSync(mark!)
  }
  const [passed, through]: [string[], string[]] = [[], []]
  let [tried, acted] = [0, 0]
  for (const hidden of [`log-append ${mark}`, `config ${included}`])
    for (const [how, text] of spellings(hidden, pem)) {
      tried++
      const raw = acts(text)
      if (raw) acted++
      let leaves: string | undefined
      try {
        leaves = openvpnConf(text).text
      } catch {
        continue
      }
      if (raw) passed.push(`${how}: ${hidden}`)
      if (acts(leaves)) through.push(`${how}: ${hidden}`)
    }
  t.ok(tried > 1000 && acted > 500, `${acted} of ${tried} texts make openvpn act`)
  t.same(through, [], 'openvpn acts on none of what leaves')
  t.same(passed, [], 'what openvpn would act on is refused')
  t.end()
})

t.test('what is refused plainly is refused behind an end that openvpn alone sees', needed(), async t => {
  for (const [who, uid] of USERS) {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace)
    mkdirSync(data)
    execFileSync('chown', ['-R', `${uid}:${uid}`, folder])
    chownSync(folder, uid, uid)
    const daemon = await spawnDaemon(t, { workspace, data, user: uid, env: { HOME: folder } })
    await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    const hidden = `plugin ${join(folder, 'evil.so')}`
    const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'
    for (const config of [
      `${HEAD}${hidden}\n`,
      `${HEAD}<ca>\n${pem}\n</ca>x\n${hidden}\n<extra-certs>\n</ca>\n<extra-certs>\n${pem}\n</extra-certs>\n`,
    ])
      t.match(
        await refusalOf(() => add(daemon, 'office', { provider: 'openvpn', config, autoConnect: 'off' })),
        { reason: 'unprocessable', message: /^config: line \d+: / },
        who,
      )
    t.same((await daemon.client.call('GET /vpn')).links, [], who)
    await daemon.terminate()
  }
})
