import type { ExtensionRecord, PendingExtension } from '../../../../plugins/extensions/contract.js'
import type { Client } from '../../../client.js'
import { connected } from '../../daemon/connection.js'
import { askedAs } from '../../calls/asked-as.js'
import { asked, printResult } from '../../terminal/asked.js'
import { confirmed } from '../../terminal/confirm.js'
import { SELF } from '../../terminal/own-name.js'
import { oneLine, plain } from '../../terminal/text.js'
import { say } from '../../terminal/write.js'
import { CONNECTION, EXIT, CommandFailure, misused, type GivenArguments, type Terminal, type Verb } from '../../verb.js'
import { developExtension } from './extension-dev.js'
import { installFrom, removeWhole, updateTo } from './extension-install.js'
import { packFolder } from './extension-pack.js'

const EXPECTED =
  'extension list, review ID, approve ID, enable ID, disable ID, install URL COMMIT, update ID [COMMIT], revert ID, '
  + 'remove ID, create PUBLISHER NAME, dev ID FOLDER or pack [FOLDER [FILE]]'

type Given = GivenArguments

/** Reviews, approves, installs and develops extensions. */
export const extension: Verb = {
  name: 'extension',
  usage:
    '[list | review|approve|enable|disable|revert|remove ID | install URL COMMIT | update ID [COMMIT] | '
    + 'create PUBLISHER NAME | dev ID FOLDER | pack [FOLDER [FILE]]]',
  summary: 'see what extensions may do, approve, install and develop them',
  examples: [
    'extension',
    'extension create ada notes',
    'extension review ada.notes',
    'extension approve ada.notes',
    'extension install https://git.example.org/notes.git 0f3c…',
    'extension dev ada.notes notes',
    'extension pack notes notes.tar.gz',
  ],
  notes: [
    `Every call of the group: ${SELF} extensions --help.`,
    'review shows what an extension may do as sentences, and what of it was used. approve, install and update show it '
      + 'and ask; without a terminal they need --yes.',
    'dev runs an installed extension from a folder of the workspace, or with --conversation of a private copy, loads '
      + 'each new build, and prints its log until Ctrl-C; it goes on running from there until dev ID --end, or until '
      + 'the conversation is discarded.',
    'pack writes a folder of this machine without .git and node_modules into a tar.gz that is the same for the same '
      + 'files.',
  ],
  ids: { ID: ['extensions', 'list'] },
  flags: {
    yes: { short: 'y', help: 'approve, install, update, remove: do not ask' },
    path: { value: 'PATH', help: 'install: the folder of the extension in the repository' },
    secret: { value: 'NAME', help: 'install: the stored secret that is sent as access token' },
    registry: { value: 'ADDRESS', help: 'install: the index that lists it and is asked for updates' },
    conversation: { value: 'ID', help: 'dev: the folder is in the private copy of this conversation' },
    end: { help: 'dev: go back to the pinned commit' },
    once: { help: 'dev: load the folder as it is built, and do not follow it' },
    ...CONNECTION,
  },
  least: 0,
  most: 3,
  run: async (terminal, given) => {
    const [what = 'list', one, two, ...more] = given.args
    const alone = one !== undefined && two === undefined
    const pair = one !== undefined && two !== undefined && more.length === 0
    if (what === 'list' && one === undefined) return listed(terminal, given)
    if (what === 'review' && alone) return reviewed(terminal, given, one)
    if (what === 'approve' && alone) return approved(terminal, given, one)
    if ((what === 'enable' || what === 'disable') && alone) return switched(terminal, given, one, what === 'enable')
    if (what === 'install' && pair) return installFrom(terminal, given, one, two)
    if (what === 'update' && (alone || pair)) return updateTo(terminal, given, one, two)
    if (what === 'revert' && alone) return reverted(terminal, given, one)
    if (what === 'remove' && alone) return removeWhole(terminal, given, one)
    if (what === 'create' && pair) return created(terminal, given, one, two)
    if (what === 'dev' && (pair || (alone && given.on('end')))) return developExtension(terminal, given, one, two)
    if (what === 'pack' && more.length === 0) return packFolder(terminal, given, one, two)
    return misused(`expected ${EXPECTED}, found extension ${given.args.map(plain).join(' ')}`)
  },
}

const listed = (terminal: Terminal, given: Given): Promise<number> =>
  askedAs(terminal, given, ['extensions', 'list'], (client, options) =>
    client.call('GET /extensions', undefined, options),
  )

/** The powers of something that waits, as lines. */
const powerLines = ({ added, unchanged, removed, approvedBefore }: PendingExtension): string[] => [
  ...added.map(text => `${approvedBefore ? '+' : '-'} ${oneLine(text)}`),
  ...unchanged.map(text => `  ${oneLine(text)}`),
  ...removed.map(text => `no longer: ${oneLine(text)}`),
]

const reviewed = (terminal: Terminal, given: Given, id: string): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const { extensions, pending } = await client.call('GET /extensions', undefined, { signal: terminal.signal })
    const waiting = pending.find(each => each.id === id)
    if (waiting)
      return printResult(terminal, given, waiting, () => [
        `${plain(id)} ${plain(waiting.manifest.version ?? '0.0.0')} waits for approval of:`,
        ...(waiting.powers.length > 0 ? powerLines(waiting) : ['nothing']),
        `digest ${waiting.digest}`,
        `next: ${SELF} extension approve ${plain(id)}`,
      ])
    const record = extensions.find(each => each.id === id) ?? noSuch(id)
    return printResult(terminal, given, record, () => recordLines(record))
  })

const recordLines = (record: ExtensionRecord): string[] => {
  const { id, manifest, source, usage, problems, update } = record
  const declared = [...(manifest.permissions?.daemon ?? []), ...(manifest.permissions?.sandbox ?? [])]
  const uses = declared.map(entry => {
    const { calls, last } = usage[entry] ?? { calls: 0, last: '' }
    return `  ${oneLine(entry)}: ${calls === 0 ? 'never used' : `${calls} times, last ${last}`}`
  })
  return [
    `${plain(id)} ${plain(manifest.version ?? '0.0.0')} (${source}) is approved; it declares:`,
    ...(uses.length > 0 ? uses : ['  nothing']),
    ...problems.map(problem => `problem: ${oneLine(problem)}`),
    ...(update ? [`next: ${SELF} extension update ${plain(id)}`] : []),
  ]
}

const noSuch = (id: string): never => {
  throw new CommandFailure(EXIT.refused, `there is no extension ${plain(id)}: ${SELF} extension lists them`)
}

const approved = (terminal: Terminal, given: Given, id: string): Promise<number> =>
  connected(terminal, given, async ({ client }) => {
    const { extensions, pending } = await client.call('GET /extensions', undefined, { signal: terminal.signal })
    const waiting = pending.find(each => each.id === id)
    if (!waiting) {
      if (!extensions.some(each => each.id === id)) noSuch(id)
      return printResult(terminal, given, { ok: true }, () => `${plain(id)} waits for nothing`)
    }
    if (!(await agreed(terminal, given, `${plain(id)} asks for:`, powerLines(waiting)))) return EXIT.refused
    const { digest } = waiting
    const answer = await client.call('POST /extensions/{id}/approve', { id, digest }, { signal: terminal.signal })
    return printResult(terminal, given, answer, () => `approved ${plain(id)}`)
  })

/** Shows what is going to be approved, and asks. */
const agreed = async (
  terminal: Terminal,
  given: Given,
  heading: string,
  lines: readonly string[],
): Promise<boolean> => {
  if (given.on('yes')) return true
  say(terminal, `${[heading, ...(lines.length > 0 ? lines : ['nothing'])].join('\n')}\n`)
  return confirmed(terminal, given, 'approve this?', '--yes')
}

const switched = (terminal: Terminal, given: Given, id: string, enabled: boolean): Promise<number> =>
  asked(
    terminal,
    given,
    (client, options) => client.call('POST /extensions/{id}/enabled', { id, enabled }, options),
    () => `${plain(id)} is ${enabled ? 'on' : 'off'}`,
  )

const reverted = (terminal: Terminal, given: Given, id: string): Promise<number> =>
  asked(
    terminal,
    given,
    async (client, options) => {
      const { extensions } = await client.call('GET /extensions', undefined, options)
      const ref = extensions.find(one => one.id === id)?.previous?.ref
      return client.call('POST /extensions/{id}/revert', { id, ...(ref !== undefined && { ref }) }, options)
    },
    ({ ref }) => [`${plain(id)} is at ${ref}`, `next: the same again goes back`],
  )

const created = (terminal: Terminal, given: Given, publisher: string, name: string): Promise<number> =>
  asked(
    terminal,
    given,
    (client: Client, options) => client.call('POST /extensions/workspace', { publisher, name }, options),
    ({ id, dir }) => [`made ${plain(id)} in ${oneLine(dir)}`, `next: edit server.ts there, then ${SELF} extension`],
  )
