import { rm, writeFile } from 'node:fs/promises'
import { posix, join } from 'node:path'
import { entryExists, plainText } from '../../../sdk/node/files/real-folders.js'
import { readCodeFolder } from '../../../sdk/node/transport/code-folder.js'

/** A tool server that a plugin lists: a program, or an address. */
export interface PluginServer {
  readonly name: string
  /** The program and its arguments; `${CLAUDE_PLUGIN_ROOT}` is the folder of the plugin. */
  readonly command?: readonly string[]
  readonly env?: { readonly [name: string]: string }
  readonly url?: string
  readonly headers?: { readonly [name: string]: string }
}

/** What a plugin brings, by its files. */
export interface PluginContents {
  readonly skills: readonly string[]
  readonly agents: readonly string[]
  readonly commands: readonly string[]
  readonly hooks: boolean
  readonly servers: readonly PluginServer[]
  /** What of it is not used, as sentences. */
  readonly problems: readonly string[]
  readonly files: number
  readonly bytes: number
}

const LIST = '.mcp.json'
const ABOUT = '.claude-plugin/plugin.json'
const MOST_TEXT = 256 * 1024
const MOST_SERVERS = 20
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$/
/** The name that programs of plugins know their own folder by. */
export const OWN_FOLDER = '${CLAUDE_PLUGIN_ROOT}'

type Json = { readonly [key: string]: unknown }

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

const isTexts = (value: unknown): value is { readonly [name: string]: string } =>
  isObject(value) && Object.values(value).every(one => typeof one === 'string')

const isList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(one => typeof one === 'string')

/** The object in a file of JSON; undefined: no such file; a text: why it cannot be used. */
const objectIn = async (root: string, path: string): Promise<Json | string | undefined> => {
  const text = await plainText(join(root, path), MOST_TEXT)
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : `${path} is not used: expected a JSON object`
  } catch {
    return `${path} is not used: it is not JSON`
  }
}

/**
 * Reads what a plugin brings and takes its list of tool servers out of its folder: the sandbox starts these, so that
 * their calls are asked for and recorded as those of every tool server, and no agent program starts them a second time.
 */
export const takeContents = async (root: string): Promise<PluginContents> => {
  const { servers, problems } = await takeServers(root)
  const { files, bytes } = await readCodeFolder(root, { hashed: false })
  const paths = [...files.keys()]
  const named = (pattern: RegExp) => paths.flatMap(path => pattern.exec(path)?.[1] ?? []).sort()
  return {
    skills: named(/^skills\/([^/]+)\/SKILL\.md$/),
    agents: named(/^agents\/(?:.*\/)?([^/]+)\.md$/),
    commands: named(/^commands\/(?:.*\/)?([^/]+)\.md$/),
    hooks: paths.some(path => path.startsWith('hooks/')) || (await aboutOf(root))?.hooks !== undefined,
    ...{ servers, problems, files: files.size, bytes },
  }
}

const aboutOf = async (root: string): Promise<Json | undefined> => {
  const about = await objectIn(root, ABOUT)
  return typeof about === 'string' ? undefined : about
}

const takeServers = async (root: string): Promise<{ servers: PluginServer[]; problems: string[] }> => {
  const problems: string[] = []
  const about = await aboutOf(root)
  const given = about?.mcpServers
  const listed = typeof given === 'string' ? posix.normalize(given) : undefined
  const lists = [LIST, ...(listed === undefined || listed.startsWith('..') || listed === LIST ? [] : [listed])]
  if (given !== undefined && !isObject(given) && (listed === undefined || listed.startsWith('..')))
    problems.push(`mcpServers of ${ABOUT} is not used: expected an object, or the path of a file in the plugin`)
  const found: [string, unknown][] = isObject(given) ? Object.entries(given) : []
  for (const path of lists) {
    const list = await objectIn(root, path)
    if (typeof list === 'string') problems.push(list)
    else if (list) found.push(...Object.entries(isObject(list.mcpServers) ? list.mcpServers : list))
  }
  await rm(join(root, LIST), { force: true })
  if (!about && (await entryExists(join(root, ABOUT)))) {
    problems.push(`${ABOUT} is not used: expected a JSON object in a plain file of at most ${MOST_TEXT} bytes`)
    await rm(join(root, ABOUT))
  } else if (about && given !== undefined) {
    const { mcpServers: _, ...rest } = about
    await writeFile(join(root, ABOUT), `${JSON.stringify(rest, undefined, 2)}\n`)
  }
  const servers = [...new Map(found)].flatMap(([name, server]) => {
    const read = serverOf(name, server)
    if (typeof read !== 'string') return [read]
    problems.push(read)
    return []
  })
  if (servers.length > MOST_SERVERS)
    problems.push(`it lists more than ${MOST_SERVERS} tool servers: the rest is left out`)
  return { servers: servers.slice(0, MOST_SERVERS), problems }
}

/** A server of a list; a text: why it is not used. */
const serverOf = (name: string, server: unknown): PluginServer | string => {
  const shown = `its tool server ${JSON.stringify(name.slice(0, 60))} is not used`
  if (!NAME.test(name)) return `${shown}: expected a name of letters, digits, - and _`
  if (!isObject(server)) return `${shown}: expected a command or a url`
  const { command, args = [], env = {}, url, headers = {} } = server
  const whole = JSON.stringify([command, args, env, url, headers])
  const unknown = [...whole.matchAll(/\$\{[^}]*\}/g)].map(([found]) => found).find(found => found !== OWN_FOLDER)
  if (unknown !== undefined)
    return `${shown}: it needs ${unknown}, and a plugin gets no values; connect the server itself with the card mcp`
  if (whole.includes('\\u0000') || (isTexts(env) && Object.values(env).some(value => /[\r\n]/.test(value))))
    return `${shown}: expected texts without NUL, and variables of one line`
  if (typeof command === 'string' && command !== '' && isList(args) && isTexts(env))
    return { name, command: [command, ...args], env: { ...env } }
  if (typeof url === 'string' && isTexts(headers)) return { name, url, headers: { ...headers } }
  return `${shown}: expected a command or a url`
}

/** The sentences that say what a plugin brings; none: it brings nothing. */
export const broughtSentences = ({ skills, agents, commands, hooks, servers }: PluginContents): string[] => [
  ...(skills.length > 0 ? [`skills for turns: ${some(skills)}`] : []),
  ...(servers.length > 0 ? [`tool servers that the sandbox starts: ${some(servers.map(({ name }) => name))}`] : []),
  ...(agents.length > 0 ? [`agents for programs that load plugins: ${some(agents)}`] : []),
  ...(commands.length > 0 ? [`commands for programs that load plugins: ${some(commands)}`] : []),
  ...(hooks ? ['hooks: programs that load plugins run their commands behind the wall'] : []),
]

const some = (names: readonly string[]): string =>
  `${names.slice(0, 10).join(', ')}${names.length > 10 ? ` and ${names.length - 10} more` : ''}`
