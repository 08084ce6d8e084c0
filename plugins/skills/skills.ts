import { leads, refuse, type Context, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { knowsConnections } from '../../sdk/node/access/knows-connections.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { segmentsOf } from '../../sdk/node/files/paths.js'
import { record } from '../../sdk/node/record/record.js'
import type { KitSkillFolder } from '../personas/contract.js'
import type { AgentFolder, ConnectionSkill } from '../capabilities/contract.js'
import { BUILTIN } from './builtin.js'
import type {
  ImportedSkills,
  SkillBody,
  SkillFile,
  SkillImport,
  SkillsAsked,
  SkillSummary,
  TurnSkill,
} from './contract.js'
import { LoadedSkills, type WantedSkill } from './loaded.js'
import type { FoundPack } from './found-packs.js'
import { PackImport } from './pack-import.js'
import { sweepFetched, withPacksOf } from './skill-source.js'
import { isSkillName, Packs, SKILL_FILE } from './packs.js'
import { composeSkill, parseSkill, tokensIn } from './skill-text.js'

const MOST_ON = 200
/** The folder of own skills, from the workspace root. */
const OWN = ['.sandbox', 'config', 'skills']
const MOST_TURN_FILE = 256 * 1024

/** The skills of the sandbox: their storage, which are enabled, and those that turns get. */
export class Skills {
  readonly #host: Host
  readonly #own: Packs
  readonly #loaded: LoadedSkills
  readonly #imports: PackImport
  readonly #turns = new KeyedMutex()

  constructor(host: Host) {
    const { workspace } = host.place
    this.#host = host
    this.#own = new Packs(workspace, ...OWN)
    this.#imports = new PackImport(workspace, ...OWN)
    this.#loaded = new LoadedSkills(workspace, host.store)
  }

  async list(context: Context): Promise<SkillSummary[]> {
    const [own, loaded, kits, broughtNow, connected, seen] = await Promise.all([
      this.#own.all(),
      this.#loaded.packs.all(),
      this.#kits(context),
      this.#brought({}),
      knowsConnections(context.caller) ? this.#ofConnections({}) : [],
      accessViewFor(this.#host, context.caller),
    ])
    const isOn = (name: string): boolean => loaded.has(name)
    const fixed = { switchable: false, editable: false, removable: false }
    const mine = [...own].map(async ([name, text]) => ({
      ...summaryOf(name, text, (await this.#own.files(name)).length),
      ...{ origin: 'own' as const, enabled: isOn(name), switchable: true, editable: true, removable: true },
    }))
    const builtin = Object.entries(BUILTIN).map(([name, { description, body }]) => ({
      ...{ id: name, name, description, origin: 'builtin' as const, owner: 'the sandbox', enabled: isOn(name) },
      ...{ ...fixed, switchable: true, tokens: tokensIn(body), files: 0 },
    }))
    const worn = kits.map(({ persona, label, name, description, body }) => ({
      ...{ id: `persona:${persona}:${name}`, name, description, origin: 'persona' as const, owner: label },
      ...{ ...fixed, enabled: true, tokens: tokensIn(body), files: 0 },
    }))
    const brought = broughtNow.map(async ({ id, origin, owner, name, text, packs, isShadowed }) => ({
      ...summaryOf(name, text, (await packs.files(name)).length),
      ...{ id, origin, owner, ...fixed, enabled: !isShadowed && !isOn(name) },
    }))
    const ofConnections = connected.map(({ id, name, text }) => ({
      ...summaryOf(name, text, 0),
      ...{ id: `capability:${id}:${name}`, origin: 'capability' as const, owner: id, ...fixed, enabled: true },
    }))
    const loose = [...loaded].filter(([name]) => !own.has(name) && !Object.hasOwn(BUILTIN, name))
    const dropped = loose.map(async ([name, text]) =>
      (await seen.sees(this.#loaded.packs.folder(name)))
        ? [
            {
              ...summaryOf(name, text, (await this.#loaded.packs.files(name)).length),
              ...{ ...fixed, origin: 'dropped' as const, enabled: true, removable: true },
            },
          ]
        : [],
    )
    return [
      ...(await Promise.all(mine)),
      ...builtin.sort(byName),
      ...worn.sort(byName),
      ...(await Promise.all(brought)).sort(byName),
      ...ofConnections.sort(byName),
      ...(await Promise.all(dropped)).flat(),
    ]
  }

  async read(id: string, context: Context): Promise<SkillBody> {
    const found = (await this.list(context)).find(each => each.id === id)
    if (!found) return noSkill(id)
    const { name, description, origin } = found
    if (origin === 'persona') {
      const kit = (await this.#kits(context)).find(each => `persona:${each.persona}:${each.name}` === id)
      return { id, name, description, body: kit?.body ?? '', files: [] }
    }
    if (origin === 'capability') {
      const connected = (await this.#ofConnections({})).find(each => `capability:${each.id}:${each.name}` === id)
      return { id, name, description, body: parseSkill(connected?.text ?? '').body, files: [] }
    }
    if (origin === 'extension' || origin === 'plugin') {
      const brought = (await this.#brought({})).find(each => each.id === id) ?? noSkill(id)
      const { body } = parseSkill(brought.text)
      return { id, name, description, body, files: plain(await brought.packs.files(name)) }
    }
    const text = (await this.#loaded.packs.text(name)) ?? (await this.#own.text(name))
    const body = text === undefined ? BUILTIN[name]!.body : parseSkill(text).body
    const packs = origin === 'own' ? this.#own : this.#loaded.packs
    return { id, name, description, body, files: plain(await packs.files(name)) }
  }

  async save(name: string, description: string, body: string, context: Context): Promise<void> {
    await this.#turns.with('skills', async () => {
      if (Object.hasOwn(BUILTIN, name))
        refuse('conflict', `${name} is a skill of the sandbox itself: choose another name, or switch it off`)
      const before = await this.#own.text(name)
      if (before === undefined && (await this.#loaded.isForeign(name)))
        refuse(
          'conflict',
          `${this.#loaded.packs.folder(name)} is there already: remove it first, or choose another name`,
        )
      if (before === undefined) await this.#assertRoom(name)
      await this.#own.write(name, [SKILL_FILE], composeSkill(name, description, body))
      if (before === undefined) await this.#switch(name, true, context)
      await this.#converge()
    })
    await this.#published(name)
    await record(this.#host, { type: 'skill.saved', outcome: 'ok', extra: { name } }, context)
  }

  async remove(name: string, context: Context): Promise<void> {
    await this.#turns.with('skills', async () => {
      if (Object.hasOwn(BUILTIN, name))
        refuse('conflict', `${name} is a skill of the sandbox itself: switch it off instead (POST /skills/enabled)`)
      if ((await this.#own.text(name)) !== undefined) {
        await this.#switch(name, false, context)
        await this.#converge()
        await this.#own.remove(name)
      } else if ((await this.#loaded.packs.text(name)) !== undefined) await this.#loaded.remove(name)
      else {
        const kit = (await this.#kits(context)).find(each => each.name === name)
        if (kit)
          refuse('conflict', `${name} belongs to persona ${kit.persona}: POST /personas/${kit.persona}/skills/remove`)
        const brought = (await this.#brought({})).find(each => each.name === name)
        if (brought?.origin === 'extension')
          refuse('conflict', `${name} belongs to the extension ${brought.owner}: switch that off, or remove it`)
        const connected = (await this.#ofConnections({})).find(each => each.name === name)
        if (connected) refuse('conflict', `${name} belongs to the connection ${connected.id}: disconnect that`)
        if (brought) refuse('conflict', `${name} belongs to the plugin ${brought.owner}: disconnect that`)
        noSkill(name)
      }
    })
    await this.#published(name)
    await record(this.#host, { type: 'skill.removed', outcome: 'ok', extra: { name } }, context)
  }

  /** Imports all chosen skills of a source, or none. */
  async import({ from, names, replace = false }: SkillImport, context: Context): Promise<ImportedSkills> {
    const answer = await withPacksOf(this.#host, from, context, found =>
      this.#turns.with('skills', async () => {
        const skipped = (names ?? [])
          .filter(name => !found.some(pack => pack.name === name))
          .map(name => ({ name, reason: 'the source has no such skill' }))
        const chosen = new Map<string, FoundPack>()
        for (const pack of found.filter(({ name }) => !names || (names as readonly string[]).includes(name))) {
          const { name } = pack
          const reason = chosen.has(name)
            ? 'another folder of the source has this name'
            : await this.#reasonNotToImport(name, replace)
          if (reason === undefined) chosen.set(name, pack)
          else skipped.push({ name, reason })
        }
        await this.#importAll([...chosen.values()], context)
        return {
          imported: [...chosen.values()].map(({ name, files, bytes }) => ({
            name,
            files: files.length - 1,
            size: bytes,
          })),
          skipped,
        }
      }),
    )
    for (const { name } of answer.imported) await this.#published(name)
    const extra = { names: answer.imported.map(({ name }) => name), source: from.kind === 'git' ? from.url : from.path }
    if (answer.imported.length > 0) await record(this.#host, { type: 'skill.imported', outcome: 'ok', extra }, context)
    return answer
  }

  async #importAll(packs: readonly FoundPack[], context: Context): Promise<void> {
    if (packs.length === 0) return
    const { skills: on } = await this.#host.call('settings.get')
    const known = await this.#own.all()
    const fresh = packs.map(({ name }) => name).filter(name => !known.has(name) && !on.includes(name))
    if (on.length + fresh.length > MOST_ON)
      refuse('conflict', `expected at most ${MOST_ON} skills to be on, found ${on.length} and ${fresh.length} more`)
    const staged = await this.#imports.stage(packs)
    try {
      if (fresh.length > 0)
        await this.#host.call('POST /settings/patch', { set: { skills: [...on, ...fresh] } }, { as: context })
    } catch (error) {
      await this.#imports.drop(staged)
      throw error
    }
    await this.#imports.finish(staged)
    await this.#converge()
  }

  async #reasonNotToImport(name: string, replace: boolean): Promise<string | undefined> {
    if (!isSkillName(name)) return 'expected a folder of lower-case letters, digits and dashes, at most 60'
    if (Object.hasOwn(BUILTIN, name)) return 'it is a skill of the sandbox itself'
    const isOwn = (await this.#own.text(name)) !== undefined
    if (!isOwn && (await this.#loaded.isForeign(name))) return `${this.#loaded.packs.folder(name)} is there already`
    return isOwn && !replace ? 'it exists already; replace was not asked for' : undefined
  }

  async setEnabled(id: string, enabled: boolean, context: Context): Promise<void> {
    await this.#turns.with('skills', async () => {
      const found = (await this.list(context)).find(each => each.id === id)
      if (!found) return noSkill(id)
      if (!found.switchable)
        refuse(
          'conflict',
          `${id} has no switch: it is ${found.owner ? `of ${found.owner}` : 'a loose folder; remove it'}`,
        )
      if (enabled) await this.#assertRoom(id)
      await this.#switch(id, enabled, context)
      await this.#converge()
    })
    await this.#published(id)
  }

  /** Updates the loaded skills from the settings and the disk. */
  converge(): Promise<void> {
    return this.#turns.with('skills', () => this.#converge())
  }

  /** Completes or undoes interrupted steps. */
  async recover(): Promise<void> {
    await Promise.all([this.#imports.recover(), sweepFetched(this.#host)])
    await Promise.all([this.#own.sweep(), this.#loaded.packs.sweep()])
    await this.converge()
  }

  /**
   * The skills of a turn: the kit of its persona first, enabled ones and loose folders that it reaches, then those of
   * extensions and plugins.
   */
  async forTurn({ persona, folders, ...allowed }: SkillsAsked): Promise<TurnSkill[]> {
    const [own, loaded, brought, connected] = await Promise.all([
      this.#own.all(),
      this.#loaded.packs.all(),
      this.#brought(allowed),
      this.#ofConnections(allowed),
    ])
    const kit = (persona === undefined ? [] : await this.#kitsOf(persona)).map(({ name, description }) => ({
      ...{ name, description, origin: 'persona' as const },
      folder: `.sandbox/config/personas/${persona}/skills/${name}`,
    }))
    const loadedNow = [...loaded].flatMap(([name, text]): TurnSkill[] => {
      const mine = own.get(name)
      if (mine !== undefined) return [{ ...described(name, mine), origin: 'own', folder: this.#own.folder(name) }]
      if (Object.hasOwn(BUILTIN, name)) return [{ name, description: BUILTIN[name]!.description, origin: 'builtin' }]
      const folder = this.#loaded.packs.folder(name)
      return leads(folders, folder) ? [{ ...described(name, text), origin: 'dropped', folder }] : []
    })
    const ofConnections = connected.map(({ name, text }) => ({
      ...described(name, text),
      origin: 'capability' as const,
    }))
    const broughtNow = brought.map(({ name, text, folder, origin }) => ({
      ...described(name, text),
      ...{ origin, folder },
    }))
    return [
      ...new Map<string, TurnSkill>(
        [...ofConnections, ...broughtNow.toReversed(), ...loadedNow, ...kit].map(skill => [skill.name, skill]),
      ).values(),
    ].sort(byName)
  }

  /** A skill of a turn, or one of its files. */
  async readForTurn({ name, file, ...asked }: SkillsAsked & { name: string; file?: string }): Promise<{
    text: string
    files: SkillFile[]
  }> {
    const found = (await this.forTurn(asked)).find(each => each.name === name)
    if (!found) return refuse('not-found', `this turn has no skill ${JSON.stringify(name.slice(0, 80))}`)
    if (found.origin === 'capability') {
      const connected = (await this.#ofConnections(asked)).find(each => each.name === name)
      return { text: parseSkill(connected?.text ?? '').body, files: [] }
    }
    const packs = await this.#packsOf(found, asked)
    if (file !== undefined && file !== SKILL_FILE) {
      const bytes = await packs?.file(name, segmentsOf(file), MOST_TURN_FILE)
      return {
        text: bytes?.toString('utf8') ?? refuse('not-found', `skill ${name} has no file ${file} that can be read`),
        files: [],
      }
    }
    const text = await packs?.text(name)
    const body = text === undefined ? BUILTIN[name]?.body : parseSkill(text).body
    if (body === undefined) return refuse('not-found', `this turn has no skill ${name}`)
    return { text: body, files: plain((await packs?.files(name)) ?? []) }
  }

  async #packsOf({ origin, name }: TurnSkill, { persona, ...allowed }: SkillsAsked): Promise<Packs | undefined> {
    if (origin === 'extension' || origin === 'plugin')
      return (await this.#brought(allowed)).find(each => each.name === name && !each.isShadowed)?.packs
    if (origin === 'persona')
      return new Packs(this.#host.place.workspace, '.sandbox', 'config', 'personas', persona!, 'skills')
    if (origin === 'own') return this.#own
    return origin === 'builtin' ? undefined : this.#loaded.packs
  }

  async #converge(): Promise<void> {
    const { skills } = await this.#host.call('settings.get')
    const wanted = new Map<string, WantedSkill>()
    for (const name of [...skills].sort()) {
      const text = await this.#own.text(name)
      const builtin = Object.hasOwn(BUILTIN, name) ? BUILTIN[name] : undefined
      if (text !== undefined) wanted.set(name, { text, from: this.#own })
      else if (builtin) wanted.set(name, { text: composeSkill(name, builtin.description, builtin.body) })
    }
    await this.#loaded.converge(wanted)
  }

  async #assertRoom(name: string): Promise<void> {
    const { skills } = await this.#host.call('settings.get')
    if (skills.length >= MOST_ON && !skills.includes(name))
      refuse('conflict', `${MOST_ON} skills are on already: switch one off first`)
  }

  async #switch(name: string, on: boolean, context: Context): Promise<void> {
    const { skills: before } = await this.#host.call('settings.get')
    if (before.includes(name) === on) return
    const skills = on ? [...before, name] : before.filter(each => each !== name)
    await this.#host.call('POST /settings/patch', { set: { skills } }, { as: context })
  }

  async #published(name: string): Promise<void> {
    await this.#host
      .call('kernel.events.publish', { domain: 'skills', key: name })
      .catch(error => this.#host.log.warn('publishing a change of skills failed', { error: String(error) }))
  }

  /** The skills of the personas that a caller sees. */
  async #kits(context: Context): Promise<KitSkillFolder[]> {
    const all = await this.#kitsOf(undefined)
    if (all.length === 0) return []
    const { personas } = await this.#host.call('GET /personas', undefined, { as: context })
    return all.filter(({ persona }) => personas.some(({ id }) => id === persona))
  }

  /** The skills of plugins, and in the agent folders of extensions; one whose name another one has is shadowed. */
  async #brought(allowed: Allowed): Promise<BroughtSkill[]> {
    const [plugins, extended] = await Promise.all([this.#ofPlugins(allowed), this.#ofExtensions(allowed)])
    const all = [
      ...(await Promise.all(plugins.map(folder => skillsIn(folder, 'plugin')))),
      ...(await Promise.all(extended.map(folder => skillsIn(folder, 'extension')))),
    ].flat()
    return all.map((skill, at) => ({ ...skill, isShadowed: all.findIndex(({ name }) => name === skill.name) < at }))
  }

  /** What connections say of themselves. */
  async #ofConnections({ capabilities }: Allowed): Promise<ConnectionSkill[]> {
    if (!(await this.#host.serves('capabilities.skills'))) return []
    return (await this.#host.call('capabilities.skills', { ...(capabilities && { capabilities }) })).skills
  }

  async #ofPlugins({ capabilities }: Allowed): Promise<readonly AgentFolder[]> {
    if (!(await this.#host.serves('capabilities.agentFolders'))) return []
    return (await this.#host.call('capabilities.agentFolders', { ...(capabilities && { capabilities }) })).folders
  }

  async #ofExtensions({ extensions }: Allowed): Promise<readonly AgentFolder[]> {
    if (!(await this.#host.serves('extensions.agentFolders'))) return []
    return (await this.#host.call('extensions.agentFolders', { ...(extensions && { extensions }) })).folders
  }

  async #kitsOf(persona: string | undefined): Promise<KitSkillFolder[]> {
    if (!(await this.#host.serves('personas.kitSkills'))) return []
    return (await this.#host.call('personas.kitSkills', persona === undefined ? {} : { persona })).skills
  }
}

/** The extensions and the connections that a persona allows. */
type Allowed = Pick<SkillsAsked, 'extensions' | 'capabilities'>

/** A skill that an extension or a plugin brings. */
interface BroughtSkill {
  readonly id: string
  readonly origin: 'extension' | 'plugin'
  readonly owner: string
  readonly name: string
  readonly text: string
  readonly packs: Packs
  /** The path at which programs of a turn see it. */
  readonly folder: string
  readonly isShadowed: boolean
}

const skillsIn = async (
  { id, dir, seen }: AgentFolder,
  origin: BroughtSkill['origin'],
): Promise<Omit<BroughtSkill, 'isShadowed'>[]> => {
  const packs = new Packs(dir, 'skills')
  return [...(await packs.all())].sort().map(([name, text]) => ({
    ...{ id: `${origin}:${id}:${name}`, origin, owner: id, name, text, packs },
    folder: `${seen}/skills/${name}`,
  }))
}

const described = (name: string, text: string) => ({ name, description: parseSkill(text).description })

const summaryOf = (name: string, text: string, files: number) => {
  const { description, body } = parseSkill(text)
  return { id: name, name, description, tokens: tokensIn(body), files }
}

const plain = (files: readonly SkillFile[]): SkillFile[] => files.map(({ path, size }) => ({ path, size }))

const byName = (one: { name: string }, other: { name: string }): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : 0

const noSkill = (id: string): never =>
  refuse('not-found', `there is no skill ${JSON.stringify(id.slice(0, 80))}: GET /skills lists them`)
