import { readdir } from 'node:fs/promises'
import { posix } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { TurnSkill } from '../../skills/contract.js'
import { inTreeFolder, type Rooted } from '../tools/tree.js'
import { readCodeText, withoutHead } from './read-text.js'

/** A shortcut that came with the code, or a skill as one. */
export interface WorkspaceCommand {
  readonly name: string
  readonly description: string
  readonly hint?: string
  /** What the model is told in place of it; `$ARGUMENTS` and `$1` stand for what follows the name. */
  readonly text: string
  /** Its file; left out: it is a skill. */
  readonly path?: string
}

const FOLDERS = ['.claude/commands', '.opencode/command', '.opencode/commands']
const NAME = /^[a-z0-9][\w.-]{0,59}$/i
const MOST_FILES = 100
const MOST_FILE = 20_000
const MOST_DESCRIPTION = 200
const MOST_DEPTH = 2

/** The Markdown files below a folder; none where there is no folder. */
const filesBelow = async (tree: Rooted, folder: string, depth = MOST_DEPTH): Promise<readonly string[]> => {
  try {
    const entries = await inTreeFolder(tree, folder, async (at, shows) =>
      (await readdir(at, { withFileTypes: true })).filter(({ name }) => shows(name)),
    )
    const found = await Promise.all(
      entries.map(async entry => {
        const path = posix.join(folder, entry.name)
        if (entry.isDirectory()) return depth > 1 ? filesBelow(tree, path, depth - 1) : []
        return entry.name.endsWith('.md') ? [path] : []
      }),
    )
    return found.flat().sort()
  } catch (error) {
    if (error instanceof Refusal || codeOf(error) !== undefined) return []
    throw error
  }
}

/** The shortcuts of a turn: files of other tools, and its skills; the first of a name counts. */
export const workspaceCommands = async (
  tree: Rooted,
  skills: readonly TurnSkill[],
): Promise<readonly WorkspaceCommand[]> => {
  const commands = new Map<string, WorkspaceCommand>()
  for (const folder of FOLDERS)
    for (const path of (await filesBelow(tree, folder)).slice(0, MOST_FILES)) {
      const name = posix.relative(folder, path).slice(0, -'.md'.length).replaceAll('/', ':')
      const { text } = await readCodeText(tree, path, MOST_FILE)
      const { head, body } = withoutHead(text)
      if (!NAME.test(name.replace(':', '-')) || body === '' || commands.has(name)) continue
      const description = (head.get('description') ?? body.split('\n', 1)[0]!).slice(0, MOST_DESCRIPTION).toWellFormed()
      const hint = head.get('argument-hint')?.slice(0, MOST_DESCRIPTION).toWellFormed()
      commands.set(name, { name, description, text: body, path, ...(hint && { hint }) })
    }
  for (const { name, description } of skills) {
    if (commands.has(name) || !NAME.test(name)) continue
    const text = `Use the skill ${name}: read it with the tool Skill, then do what it says.\n\n$ARGUMENTS`
    commands.set(name, { name, description: description.slice(0, MOST_DESCRIPTION).toWellFormed(), text })
  }
  return [...commands.values()]
}

const CALLED = /^\s*\/([\w.:-]{1,120})(?:\s+([\s\S]*))?$/

/** Where what follows the name of a shortcut is put. */
const PLACES = /\$(ARGUMENTS|[1-9])/

/** What a message means that calls a shortcut; undefined: it calls none of these. */
export const commandCalled = (words: string, commands: readonly WorkspaceCommand[]): string | undefined => {
  const [, name, rest = ''] = CALLED.exec(words) ?? []
  const command = commands.find(each => each.name === name)
  if (!command) return undefined
  const given = rest.trim()
  const parts = given.split(/\s+/)
  const takes = PLACES.test(command.text)
  const filled = command.text.replaceAll(new RegExp(PLACES, 'g'), (_, place: string) =>
    place === 'ARGUMENTS' ? given : (parts[Number(place) - 1] ?? ''),
  )
  const text = takes || given === '' ? filled : `${filled}\n\n${given}`
  const from =
    command.path === undefined ? '' : ` The person asked for it; its text came with the code, from ${command.path}.`
  return `[/${command.name}]${from}\n${text.trim()}`
}
