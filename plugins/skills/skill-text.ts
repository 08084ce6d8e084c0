import { parse } from 'yaml'
import type { SkillText } from './contract.js'

const FRONT = /^---[ \t]*\r?\n([\s\S]*?)\r?\n?---[ \t]*(?:\r?\n|$)/
const MOST_FRONT = 32 * 1024
const MOST_DESCRIPTION = 1024

/** Parses a `SKILL.md`; without a front matter in valid YAML it declares nothing. */
export const parseSkill = (text: string): SkillText => {
  const found = FRONT.exec(text)
  const [whole = '', front = ''] = found ?? []
  const body = text.slice(whole.length).replace(/^\r?\n/, '')
  return { description: found && front.length <= MOST_FRONT ? described(front) : '', body }
}

const described = (front: string): string => {
  try {
    const value: unknown = parse(front, { maxAliasCount: 0 })
    const { description } = (typeof value === 'object' && value !== null ? value : {}) as { description?: unknown }
    return typeof description === 'string' ? description.trim().slice(0, MOST_DESCRIPTION).toWellFormed() : ''
  } catch {
    return ''
  }
}

/** A `SKILL.md` that every loader can read, with the body as it is: a JSON text is a YAML one. */
export const composeSkill = (name: string, description: string, body: string): string =>
  `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n\n${body}`

/** About how many tokens a text is for a model. */
export const tokensIn = (text: string): number => Math.ceil(text.length / 4)
