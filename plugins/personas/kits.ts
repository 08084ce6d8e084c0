import { rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { flushFolder } from '../../sdk/node/files/files.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { foldersIn, inRealFolder, entryExists, plainText, writeBelow } from '../../sdk/node/files/real-folders.js'

const KITS = ['.sandbox', 'config', 'personas']
const PROMPT = 'PROMPT.md'
const SKILL = 'SKILL.md'
/** A kit whose card is being removed; no id begins so. */
const PARKED = '.removed-'
const MOST_PROMPT = 128 * 1024
const MOST_SKILL = 1024 * 1024
const NAME = /^[a-z0-9][a-z0-9-]{0,59}$/

const absent = (error: unknown): void => {
  if (codeOf(error) !== 'ENOENT') throw error
}

/** The prompts and skills of cards: a folder for each card, read from the disk at each use, without following links. */
export class Kits {
  readonly #workspace: string

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  /** The path of a folder of a kit. */
  folder(...names: string[]): string {
    return join(this.#workspace, ...KITS, ...names)
  }

  /** The prompt of a card; empty: none. */
  async prompt(id: string): Promise<string> {
    return (await this.#in([id], at => plainText(join(at, PROMPT), MOST_PROMPT))) ?? ''
  }

  /** Writes the prompt of a card; a blank one removes it. */
  async savePrompt(id: string, prompt: string): Promise<void> {
    if (prompt.trim()) return writeBelow(this.#workspace, [...KITS, id], { name: PROMPT, data: prompt })
    await this.#in([id], async at => {
      await unlink(join(at, PROMPT)).catch(absent)
      await flushFolder(at)
    })
  }

  /** The texts of the skills of a card, by name. */
  async skills(id: string): Promise<{ name: string; text: string }[]> {
    const names = (await this.#in([id, 'skills'], foldersIn)) ?? []
    const found = await Promise.all(
      names.filter(name => NAME.test(name)).map(async name => ({ name, text: await this.skill(id, name) })),
    )
    return found.flatMap(({ name, text }) => (text === undefined ? [] : [{ name, text }]))
  }

  skill(id: string, name: string): Promise<string | undefined> {
    return this.#in([id, 'skills', name], at => plainText(join(at, SKILL), MOST_SKILL))
  }

  saveSkill(id: string, name: string, text: string): Promise<void> {
    return writeBelow(this.#workspace, [...KITS, id, 'skills', name], { name: SKILL, data: text })
  }

  async removeSkill(id: string, name: string): Promise<void> {
    // Without its text it is not a skill, even if a crash left other files of it.
    await this.#in([id, 'skills', name], at => unlink(join(at, SKILL)).catch(absent))
    await this.#in([id, 'skills'], async at => {
      await rm(join(at, name), { recursive: true, force: true })
      await flushFolder(at)
    })
  }

  /** Removes a kit with its card: `removed` is the commit point, before which nothing is lost. */
  async remove(id: string, removed: () => Promise<void>): Promise<void> {
    const parked = await this.#in([], async at => {
      if (!(await entryExists(join(at, id)))) return false
      await rm(join(at, PARKED + id), { recursive: true, force: true })
      await rename(join(at, id), join(at, PARKED + id))
      await flushFolder(at)
      return true
    })
    failpoint('personas.kit.parked')
    try {
      await removed()
    } catch (error) {
      if (parked) await this.#in([], at => rename(join(at, PARKED + id), join(at, id)))
      throw error
    }
    failpoint('personas.card.removed')
    if (parked) await this.#in([], at => rm(join(at, PARKED + id), { recursive: true, force: true }))
  }

  /** Completes or undoes interrupted removals: a kit is restored if its card exists. */
  async recover(isCard: (id: string) => boolean): Promise<void> {
    await this.#in([], async at => {
      for (const name of await foldersIn(at)) {
        if (!name.startsWith(PARKED)) continue
        const id = name.slice(PARKED.length)
        if (isCard(id) && !(await entryExists(join(at, id)))) await rename(join(at, name), join(at, id))
        else await rm(join(at, name), { recursive: true, force: true })
      }
      await flushFolder(at)
    })
  }

  #in<T>(names: readonly string[], work: (at: string) => Promise<T>): Promise<T | undefined> {
    return inRealFolder(this.#workspace, [...KITS, ...names], {}, work)
  }
}

/** Refuses a skill that a card does not have. */
export const noSkill = (id: string, name: string): never =>
  refuse('not-found', `persona ${id} has no skill ${name}: GET /personas/${id}/kit lists them`)
