import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CliColumns } from '../../cli-table.js'
import { ownProgram } from '../../node/programs/own-programs.js'
import { packageFolder } from '../../node/programs/package.js'
import { wallKind } from '../../node/wall/wall.js'
import { tableRows } from '../calls/answer.js'
import { printResult } from '../terminal/asked.js'
import { SELF } from '../terminal/own-name.js'
import type { Verb } from '../verb.js'
import { installAll, lackingOn, type GroupNeeds } from './lacking.js'

const COLUMNS: CliColumns = {
  group: 'group',
  lacks: { field: 'name', most: Infinity },
  'how to get it': { field: 'install', most: Infinity },
}

/** The groups of the program, with what they use. */
export const groupNeeds = async (root: string): Promise<GroupNeeds[]> => {
  const folder = join(packageFolder(root), 'manifests')
  const names = (await readdir(folder)).filter(name => name.endsWith('.json') && name !== 'schema.json')
  return Promise.all(names.map(async name => JSON.parse(await readFile(join(folder, name), 'utf8')) as GroupNeeds))
}

const FACTS = {
  hasProgram: async (name: string) => (await ownProgram(name)) !== undefined,
  hasDevice: (path: string) =>
    access(path).then(
      () => true,
      () => false,
    ),
  hasWall: async () => (await wallKind()) !== 'none',
}

/** Says what the groups lack on this machine. */
export const doctor: Verb = {
  name: 'doctor',
  usage: '',
  summary: 'show what each group lacks on this machine, and the command that installs it',
  examples: ['doctor'],
  notes: ['Each is needed only by those who use that group: the daemon starts without all of them.'],
  flags: { json: { help: 'print JSON, one value a line' } },
  most: 0,
  run: async (terminal, given) => {
    const groups = await lackingOn(await groupNeeds(terminal.root), FACTS)
    const install = installAll(groups)
    const answer = { groups, ...(install !== undefined && { install }) }
    return printResult(terminal, given, answer, (_, width) => {
      if (groups.length === 0) return ['this machine has what every group uses']
      const rows = groups.flatMap(({ group, missing }) => missing.map(each => ({ group, ...each })))
      const all = install === undefined ? [] : ['', `all programs at once: ${install}`]
      return [...tableRows(rows, COLUMNS, { width, now: 0, self: SELF }), ...all]
    })
  },
}
