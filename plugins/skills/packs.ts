import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { flushFolder } from '../../sdk/node/files/files.js'
import { foldersIn, inRealFolder, plainBytes, plainText, writeBelow } from '../../sdk/node/files/real-folders.js'
import type { SkillFile } from './contract.js'

/** The file that makes a folder a skill. */
export const SKILL_FILE = 'SKILL.md'
const MOST_TEXT = 1024 * 1024
const MOST_FILES = 500
const MOST_SKILLS = 1000
const MOST_DEPTH = 16
const NAME = /^[a-z0-9][a-z0-9-]{0,59}$/
/** A folder that is being removed; no name of a skill begins so. */
const PARKED = '.removed-'

/** Whether a folder of this name can be a skill. */
export const isSkillName = (name: string): boolean => NAME.test(name)

/** A file of a skill, and whether it is a program. */
export interface PackFile extends SkillFile {
  readonly executable: boolean
}

/** The skills in one folder of the workspace: a folder each, read without following links. */
export class Packs {
  readonly #workspace: string
  readonly #names: readonly string[]

  /** The skills in a folder, by its names from the workspace root. */
  constructor(workspace: string, ...names: string[]) {
    this.#workspace = workspace
    this.#names = names
  }

  /** The folder of a skill, from the workspace root. */
  folder(name: string): string {
    return [...this.#names, name].join('/')
  }

  /** The texts of the skills, by name. */
  async all(): Promise<Map<string, string>> {
    const names = (await this.#in([], foldersIn)) ?? []
    const found = new Map<string, string>()
    for (const name of names.filter(each => NAME.test(each)).slice(0, MOST_SKILLS)) {
      const text = await this.text(name)
      if (text !== undefined) found.set(name, text)
    }
    return found
  }

  /** The text of a skill; undefined: missing or unreadable. */
  text(name: string): Promise<string | undefined> {
    return this.#in([name], at => plainText(join(at, SKILL_FILE), MOST_TEXT))
  }

  /** Writes a file of a skill; its path is from the folder of the skill. */
  write(name: string, path: readonly string[], data: string | Uint8Array, executable = false): Promise<void> {
    const folders = [...this.#names, name, ...path.slice(0, -1)]
    return writeBelow(this.#workspace, folders, { name: path.at(-1)!, data, executable })
  }

  /** The plain files beside the text, without links and other names that are not part of a skill. */
  async files(name: string): Promise<PackFile[]> {
    const files: PackFile[] = []
    const look = async (below: readonly string[]): Promise<void> => {
      await this.#in([name, ...below], async at => {
        for (const entry of (await readdir(at, { withFileTypes: true })).sort(byName)) {
          const path = [...below, entry.name].join('/')
          if (files.length >= MOST_FILES || path === SKILL_FILE) continue
          if (entry.isDirectory() && below.length < MOST_DEPTH) await look([...below, entry.name])
          if (entry.isFile()) {
            const { size, mode } = await lstat(join(at, entry.name))
            files.push({ path, size, executable: (mode & 0o100) !== 0 })
          }
        }
      })
    }
    await look([])
    return files
  }

  /** The bytes of a file beside the text; undefined: missing or too large. */
  file(name: string, path: readonly string[], most: number): Promise<Buffer | undefined> {
    return this.#in([name, ...path.slice(0, -1)], at => plainBytes(join(at, path.at(-1)!), most))
  }

  /** Removes a skill with its files, in one step. */
  async remove(name: string): Promise<void> {
    await this.#in([], async at => {
      const parked = join(at, PARKED + name)
      await rm(parked, { recursive: true, force: true })
      await rename(join(at, name), parked).catch(absent)
      await flushFolder(at)
      await rm(parked, { recursive: true, force: true })
    })
  }

  /** Removes the leftovers of interrupted removals. */
  async sweep(): Promise<void> {
    await this.#in([], async at => {
      for (const name of await foldersIn(at))
        if (name.startsWith(PARKED)) await rm(join(at, name), { recursive: true, force: true })
    })
  }

  #in<T>(names: readonly string[], work: (at: string) => Promise<T>): Promise<T | undefined> {
    return inRealFolder(this.#workspace, [...this.#names, ...names], {}, work)
  }
}

const byName = (one: { name: string }, other: { name: string }): number => (one.name < other.name ? -1 : 1)

const absent = (error: { code?: string }): void => {
  if (error.code !== 'ENOENT') throw error
}
