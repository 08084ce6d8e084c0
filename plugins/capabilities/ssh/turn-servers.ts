import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import { KNOWN_HOSTS } from '../../../sdk/node/transport/known-hosts.js'
import { nameOfServer, quotedForSsh, sshSettings } from '../../../sdk/node/transport/ssh-login.js'
import { note } from '../../../sdk/node/wall/sources.js'
import type { TurnVariables } from '../contract.js'
import type { OpenEntry } from '../records/kinds.js'
import { AGENT, RELAY, type SshDoors } from './doors.js'
import { loginOf, secretOf, sshServerOf } from './server.js'
import { shownServer } from './words.js'

/** The settings of ssh for the whole system: a turn's user has none of its own behind the wall. */
const SYSTEM_CONFIG = '/etc/ssh/ssh_config'
/** Where a turn sees the folders of its servers, and the program that answers for a password. */
const FOLDER = '/run/sandbox-ssh'
const ASKPASS = '/run/sandbox-ssh-askpass'
const CHILD = programFile('plugins/capabilities/ssh/relay-child.js')

const passwordVariable = (id: string): string => `SSH_PASSWORD_${id.toUpperCase().replaceAll('-', '_')}`

/** A word of the shell with which ssh starts a program; `%` begins a token of ssh. */
const word = (text: string): string => `'${text.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`

const entryOf = (entry: OpenEntry): string => {
  const { id } = entry
  const { host, port, user } = sshServerOf(entry)
  const at = (name: string) => join(FOLDER, id, name)
  const relay = [process.execPath, CHILD, at(RELAY)].map(word).join(' ')
  return [
    `Host ${id}`,
    `HostName ${host}`,
    `Port ${port}`,
    `User ${user}`,
    `ProxyCommand ${relay}`,
    'ProxyUseFdpass no',
    loginOf(entry) === 'key' ? `IdentityAgent ${quotedForSsh(at(AGENT))}` : 'IdentityAgent none',
    ...sshSettings({ host, port }, at(KNOWN_HOSTS), loginOf(entry)),
    'StrictHostKeyChecking yes',
    '',
  ].join('\n  ')
}

/**
 * Answers a question of ssh for a password with the variable of the server that asks. Ssh itself writes the beginning
 * of a question, and what follows may be the server's words: they must not stand for another server.
 */
const askpassFor = (entries: readonly OpenEntry[]): string =>
  [
    '#!/bin/sh',
    'case "$1" in',
    ...entries.map(entry => {
      const server = sshServerOf(entry)
      const name = nameOfServer(server)
      const asked = `${server.user.slice(0, 30)}@${name.slice(0, 128)}`
      const questions = `'(${server.user}@${name}) '*|'${asked}'"'s password: "`
      return `${questions}) printf '%s\\n' "$${passwordVariable(entry.id)}" ;;`
    }),
    '*) exit 1 ;;',
    'esac',
    '',
  ].join('\n')

/** What the programs of a turn get of the connected servers: entries of ssh's settings, sockets and passwords. */
export const serversForTurn = async (
  { place }: Pick<Host, 'place'>,
  doors: SshDoors,
  entries: readonly OpenEntry[],
): Promise<TurnVariables> => {
  const system = entries.length > 0 ? await readFile(SYSTEM_CONFIG, 'utf8').catch(() => undefined) : undefined
  if (system === undefined) return { variables: {} }
  const files = await Promise.all(entries.map(async ({ id }) => ({ from: await doors.open(id), to: join(FOLDER, id) })))
  const config = [...entries.map(entryOf), 'Host *', system].join('\n')
  files.push({ from: await note(place.data, config), to: SYSTEM_CONFIG })
  const protectedByPassword = entries.filter(entry => loginOf(entry) === 'password')
  const variables = Object.fromEntries(
    protectedByPassword.map(entry => [passwordVariable(entry.id), secretOf(entry).value]),
  )
  if (protectedByPassword.length > 0) {
    files.push({ from: await note(place.data, askpassFor(protectedByPassword), 0o555), to: ASKPASS })
    Object.assign(variables, { SSH_ASKPASS: ASKPASS, SSH_ASKPASS_REQUIRE: 'force' })
  }
  const list = entries.map(entry => `- ${entry.id}: ${sshServerOf(entry).user} at ${shownServer(sshServerOf(entry))}`)
  const text = `Programs reach these servers over ssh by their names, such as: ssh ${entries[0]!.id} uname\n`
  return { variables, files, notes: [{ title: 'Servers', text: text + list.join('\n') }] }
}
