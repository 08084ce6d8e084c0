import { readlink, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Store } from '../../sdk/index.js'
import { writeAtomic } from '../../sdk/node/files/files.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { inRealFolder, entryExists, plainText } from '../../sdk/node/files/real-folders.js'
import { Packs, SKILL_FILE } from './packs.js'
import { parseSkill } from './skill-text.js'

/** Folders from which agent programs load skills, in addition to the shared one. */
const RUNTIMES = [['.claude', 'skills']] as const
const INDEX = 'AGENTS.md'
const MOST_INDEX = 1024 * 1024
const MOST_FILE = 20 * 1024 * 1024
const PLACED = 'placed'
const BEGIN = '<!-- skills: this list is kept by the sandbox -->'
const END = '<!-- end of skills -->'

/** A skill to load: its text, and the path of its other files. */
export interface WantedSkill {
  readonly text: string
  readonly from?: Packs
}

/**
 * The loaded skills: a folder for each enabled skill, a link for each agent program with another folder, and a list
 * in `AGENTS.md`. Only what was placed here is changed or removed.
 */
export class LoadedSkills {
  readonly packs: Packs
  readonly #workspace: string
  readonly #store: Pick<Store, 'get' | 'set'>

  constructor(workspace: string, store: Pick<Store, 'get' | 'set'>) {
    this.#workspace = workspace
    this.#store = store
    this.packs = new Packs(workspace, '.agents', 'skills')
  }

  /** Whether the name in the folder was not placed by the sandbox. */
  async isForeign(name: string, text?: string): Promise<boolean> {
    const there = await inRealFolder(this.#workspace, ['.agents', 'skills'], {}, at => entryExists(join(at, name)))
    if (!there || (await this.#placed()).includes(name)) return false
    return text === undefined || (await this.packs.text(name)) !== text
  }

  /** Updates the loaded skills to the wanted ones. */
  async converge(wanted: ReadonlyMap<string, WantedSkill>): Promise<void> {
    const before = await this.#placed()
    const mine: string[] = []
    for (const [name, { text }] of wanted) if (!(await this.isForeign(name, text))) mine.push(name)
    const over = before.filter(name => !mine.includes(name))
    // Before the folders, so that after a crash they are known as placed here.
    const all = [...new Set([...before, ...mine])].sort()
    if (all.join() !== before.join()) await this.#store.set(PLACED, all)
    for (const name of over) {
      await this.packs.remove(name)
      await this.#links(at => unlinkOurs(join(at, name), name))
    }
    for (const name of mine) {
      await this.#place(name, wanted.get(name)!)
      await this.#links(at => link(join(at, name), name), true)
    }
    await this.#listed(new Map(mine.map(name => [name, parseSkill(wanted.get(name)!.text).description])))
    if (over.length > 0) await this.#store.set(PLACED, mine.sort())
  }

  /** Removes a loose folder, and the links to it. */
  async remove(name: string): Promise<void> {
    await this.packs.remove(name)
    await this.#links(at => unlinkOurs(join(at, name), name))
  }

  async #placed(): Promise<readonly string[]> {
    return (await this.#store.get<string[]>(PLACED)) ?? []
  }

  async #place(name: string, { text, from }: WantedSkill): Promise<void> {
    await this.packs.write(name, [SKILL_FILE], text)
    for (const { path, executable } of (await from?.files(name)) ?? []) {
      const names = path.split('/')
      const bytes = await from!.file(name, names, MOST_FILE)
      if (bytes) await this.packs.write(name, names, bytes, executable)
    }
  }

  async #links(work: (at: string) => Promise<void>, make = false): Promise<void> {
    for (const folders of RUNTIMES) {
      try {
        await inRealFolder(this.#workspace, folders, { make }, work)
      } catch (error) {
        // A foreign file or link has the path of the folder, and is kept.
        if ((error as { reason?: string }).reason !== 'unprocessable') throw error
      }
    }
  }

  /** Writes the list of skills into `AGENTS.md`, and changes nothing else in it. */
  async #listed(skills: ReadonlyMap<string, string>): Promise<void> {
    await inRealFolder(this.#workspace, [], {}, async at => {
      const path = join(at, INDEX)
      const there = await entryExists(path)
      const before = there ? await plainText(path, MOST_INDEX) : ''
      // A link or a binary file is not the sandbox's.
      if (before === undefined) return
      const after = withList(before, skills)
      if (after === before) return
      if (after === '') await unlink(path)
      else await writeAtomic(path, after, { mode: 0o644 })
    })
  }
}

const targetOf = (name: string): string => `../../.agents/skills/${name}`

const link = async (path: string, name: string): Promise<void> => {
  await symlink(targetOf(name), path).catch(error => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
}

const unlinkOurs = async (path: string, name: string): Promise<void> => {
  if ((await readlink(path).catch(() => undefined)) === targetOf(name)) await unlink(path)
}

/** A text with the list: at its old position, otherwise at the end; without skills there is no list. */
export const withList = (text: string, skills: ReadonlyMap<string, string>): string => {
  const from = text.indexOf(BEGIN)
  const to = from === -1 ? -1 : text.indexOf(END, from)
  const lines = [...skills].map(
    ([name, description]) => `- ${name}: ${description.replace(/\s+/g, ' ')} (.agents/skills/${name}/SKILL.md)`,
  )
  const list = lines.length > 0 ? `${BEGIN}\n${lines.join('\n')}\n${END}\n` : ''
  if (to === -1) return list === '' ? text : `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${list}`
  const rest = text.slice(to + END.length).replace(/^\r?\n/, '')
  return text.slice(0, from) + list + rest
}
