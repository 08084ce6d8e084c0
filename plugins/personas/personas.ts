import { refuse, type Caller, type Context, type Host } from '../../sdk/index.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import { accessViewFor, reachFor } from '../../sdk/node/access/asked-reach.js'
import { accessToConversation } from '../../sdk/node/access/conversation-reach.js'
import { ASKING_TOOLS, POWERED_TOOLS, withheldBy } from '../../sdk/node/access/powers.js'
import { record } from '../../sdk/node/record/record.js'
import type { CardFile } from './card-file.js'
import { assertNarrow, storedCard } from './card-paths.js'
import type {
  KitSkillFolder,
  KitSkillText,
  Persona,
  PersonaCard,
  PersonaGiven,
  PersonaModel,
  PersonaPrompt,
  PersonaSkill,
  PersonaUse,
  ResolvedPersona,
  TurnPersona,
} from './contract.js'
import { noSkill, type Kits } from './kits.js'
import { cardWithin, noPersona, BRIEFING_NOTES, placesOf, powersOf, usableConnections } from './turn-persona.js'

type Connection = { readonly id: string; readonly kind: string; readonly connected: boolean }

/** The personas of the sandbox, and their effects on turns. */
export class Personas {
  readonly #host: Host
  readonly #file: CardFile
  readonly #kits: Kits

  constructor(host: Host, file: CardFile, kits: Kits) {
    this.#host = host
    this.#file = file
    this.#kits = kits
  }

  async list(caller: Caller): Promise<Persona[]> {
    const [{ cards }, reach, connections] = await Promise.all([
      this.#file.read(),
      reachFor(this.#host, caller),
      this.#connections(),
    ])
    const able = new Set(connections.filter(({ connected }) => connected).map(({ id }) => id))
    const { workspace } = this.#host.place
    const seen = await Promise.all([...cards.values()].map(card => cardWithin(workspace, card, reach)))
    return seen
      .filter(card => card !== undefined)
      .sort((one, other) => compare(labelOf(one), labelOf(other)) || compare(one.id, other.id))
      .map(card => ({ ...card, connected: card.capabilities.filter(id => able.has(id)) }))
  }

  /** A card as a caller sees it; not found if they reach none of its folders. */
  async visible(id: string, caller: Caller): Promise<PersonaCard> {
    const card = await this.#file.get(id)
    const seen = await cardWithin(this.#host.place.workspace, card, await reachFor(this.#host, caller))
    return seen ?? refuse('not-found', `there is no persona ${JSON.stringify(id)}: GET /personas lists them`)
  }

  async save({ connected: _connected, ...given }: PersonaGiven, context: Context): Promise<void> {
    const card = storedCard(given)
    assertNarrow(card)
    await this.#file.alone(() => this.#file.put(card.id, card))
    await this.published('personas', card.id)
    await record(this.#host, { type: 'persona.saved', outcome: 'ok', extra: { id: card.id } }, context)
  }

  async remove(id: string, context: Context): Promise<void> {
    const was = await this.#file.alone(async () => {
      const { cards } = await this.#file.read()
      await this.#kits.remove(id, () => this.#file.put(id, undefined))
      return cards.has(id)
    })
    if (!was) return
    await Promise.all([this.published('personas', id), this.published('skills', id)])
    this.#host.emit('persona.removed', { id })
    await record(this.#host, { type: 'persona.removed', outcome: 'ok', extra: { id } }, context)
  }

  /** Changes the kit of a card while nothing else changes. */
  async inKit(id: string, work: () => Promise<void>): Promise<void> {
    await this.#file.alone(async () => {
      await this.#file.get(id)
      await work()
    })
  }

  async skills(id: string): Promise<KitSkillText[]> {
    return Promise.all((await this.#kits.skills(id)).map(({ name, text }) => this.#parsed(name, text)))
  }

  async skill(id: string, name: string): Promise<KitSkillText> {
    return this.#parsed(name, (await this.#kits.skill(id, name)) ?? noSkill(id, name))
  }

  async kitSkills(of: string | undefined): Promise<KitSkillFolder[]> {
    const { cards } = await this.#file.read()
    const wanted = [...cards.values()].filter(({ id }) => of === undefined || id === of)
    const each = wanted.map(async card =>
      (await this.skills(card.id)).map(skill => ({
        ...skill,
        persona: card.id,
        label: labelOf(card),
        folder: this.#kits.folder(card.id, 'skills', skill.name),
      })),
    )
    return (await Promise.all(each)).flat()
  }

  async #parsed(name: string, text: string): Promise<KitSkillText> {
    const { description, body } = await this.#host.call('skills.parse', { text })
    return { name, description, body }
  }

  /** The effects of a card on a turn. */
  async forTurn(actsAs: string): Promise<TurnPersona> {
    const card = (await this.#file.read()).cards.get(actsAs)
    if (!card) return noPersona(actsAs)
    const [connections, extensions, { startIn, folders }, prompt] = await Promise.all([
      this.#connectionKinds(),
      this.#extensionIds(),
      placesOf(this.#host.place.workspace, card),
      this.#kits.prompt(card.id),
    ])
    const powers = powersOf(card, connections, extensions)
    return {
      id: card.id,
      known: true,
      powers,
      capabilities: usableConnections(card, powers, connections),
      ...(folders && { folders }),
      ...(startIn !== undefined && { startIn }),
      ...(card.context && { repos: card.context.repos }),
      ...(card.systemPromptMode === 'custom' && prompt && { instructions: prompt }),
      ...(card.systemPromptMode !== undefined && { ownPrompt: true }),
      notes: BRIEFING_NOTES.filter(note => !card.briefing?.omit.includes(note)),
      models: card.models ?? [],
    }
  }

  async resolved(id: string, unattended: boolean, caller: Caller): Promise<ResolvedPersona> {
    const host = this.#host
    const card = await this.visible(id, caller)
    const turn = await this.forTurn(id)
    const seen = await accessViewFor(host, caller)
    const [connections, { missing }, prompt, skills, usedBy] = await Promise.all([
      this.#connections(),
      placesOf(host.place.workspace, card),
      this.#prompt(card, turn),
      this.#skillsOf(id, turn),
      this.#usedBy(id, seen),
    ])
    const isToken = caller.kind === 'token'
    const named = new Set([...card.capabilities, ...namedInPowers(card)])
    // A token does not see connections that the card does not name.
    const shown = (ids: readonly string[]) => (isToken ? ids.filter(each => named.has(each)) : [...ids])
    const { connectors, devices, mcp, extensions, ...switches } = turn.powers
    const withheld = POWERED_TOOLS.flatMap(tool => {
      const by = withheldBy(turn.powers, tool) ?? (unattended && ASKING_TOOLS.has(tool) ? 'unattended' : undefined)
      return by === undefined ? [] : [{ tool, by }]
    })
    const tools = POWERED_TOOLS.filter(tool => !withheld.some(each => each.tool === tool))
    const accounts = card.capabilities.map(account => {
      const found = connections.find(each => each.id === account)
      return { id: account, kind: (!isToken && found?.kind) || '', connected: found?.connected ?? false }
    })
    const usable = await this.#usable(turn)
    const { folders = [], startIn = '.' } = card.workspace ?? {}
    const told = [
      ...(skills.length > 0 ? (['context', 'skills'] as const) : (['context'] as const)),
      ...((await host.serves('agent.notes'))
        ? (await host.call('agent.notes', { persona: turn, unattended })).notes
        : []),
    ]
    return {
      id,
      label: labelOf(card),
      powers: {
        ...switches,
        connectors: shown(connectors),
        devices: shown(devices),
        mcp: shown(mcp),
        extensions: [...extensions],
      },
      accounts,
      tools,
      withheld,
      skills,
      prompt,
      notes: turn.notes.filter(note => told.includes(note)),
      ...(usable && { model: usable }),
      workspace: { startIn, folders: [...folders], missing },
      usedBy,
      problems: [
        ...card.capabilities
          .filter(account => !connections.some(each => each.id === account))
          .map(account => `account ${account} exists nowhere: connect it, or take it off the card`),
        ...missing.map(path => `there is no folder ${path}`),
        ...(card.systemPromptMode === 'custom' && turn.instructions === undefined
          ? ["the card is in custom mode and has no prompt: the sandbox's own instructions are used"]
          : []),
        ...(card.models?.length && !usable ? ['none of its models can be used now'] : []),
        ...(await unseen(card.context?.repos ?? [], seen.sees)),
      ],
    }
  }

  async naming(): Promise<{ id: string; capabilities: string[] }[]> {
    const { cards } = await this.#file.read()
    return [...cards.values()].map(card => ({
      id: card.id,
      capabilities: [...new Set([...card.capabilities, ...namedInPowers(card)])],
    }))
  }

  async repoint(from: string, to: string): Promise<void> {
    const renamed = (ids: string[]) => [...new Set(ids.map(id => (id === from ? to : id)))]
    await this.#file.alone(() =>
      this.#file.replaceAll(card => {
        const { connectors, devices, mcp } = card.powers ?? {}
        const lists = {
          ...(connectors && { connectors: renamed(connectors) }),
          ...(devices && { devices: renamed(devices) }),
          ...(mcp && { mcp: renamed(mcp) }),
        }
        return {
          ...card,
          capabilities: renamed(card.capabilities),
          ...(card.powers && { powers: { ...card.powers, ...lists } }),
        }
      }),
    )
    await this.published('personas')
  }

  /** Publishes that personas, or their skills, have changed. */
  async published(domain: 'personas' | 'skills', key?: string): Promise<void> {
    await this.#host
      .call('kernel.events.publish', { domain, ...(key !== undefined && { key }) })
      .catch(error => this.#host.log.warn('publishing a change of personas failed', { error: String(error) }))
  }

  async #extensionIds(): Promise<string[]> {
    if (!(await this.#host.serves('extensions.ids'))) return []
    return (await this.#host.call('extensions.ids')).ids
  }

  async #connectionKinds(): Promise<{ id: string; kind: string }[]> {
    if (!(await this.#host.serves('capabilities.records'))) return []
    return (await this.#host.call('capabilities.records', {})).capabilities
  }

  async #connections(): Promise<Connection[]> {
    if (!(await this.#host.serves('GET /capabilities'))) return []
    const { capabilities } = await this.#host.call('GET /capabilities')
    return capabilities.map(({ id, kind, status }) => ({ id, kind, connected: status.state === 'active' }))
  }

  async #skillsOf(persona: string, { powers: { extensions } }: TurnPersona): Promise<PersonaSkill[]> {
    const { skills } = await this.#host.call('skills.forTurn', { persona, extensions })
    return skills.map(({ name, description, origin }) => ({
      name,
      description,
      origin: origin === 'persona' ? 'persona' : 'sandbox',
    }))
  }

  async #prompt({ systemPromptMode: mode = 'core' }: PersonaCard, turn: TurnPersona): Promise<PersonaPrompt> {
    if (turn.instructions !== undefined) return { mode: 'custom', from: 'persona', chars: turn.instructions.length }
    const own = mode === 'custom' ? 'core' : mode
    if (own === 'vendor' || !(await this.#host.serves('agent.instructions')))
      return { mode: own, from: 'sandbox', chars: 0 }
    const { chars } = await this.#host.call('agent.instructions')
    return { mode: 'core', from: 'sandbox', chars }
  }

  async #usable({ models }: TurnPersona): Promise<PersonaModel | undefined> {
    if (models.length === 0 || !(await this.#host.serves('agent.usableModel'))) return undefined
    const { first } = await this.#host.call('agent.usableModel', { models })
    return first === undefined ? undefined : models[first]
  }

  async #usedBy(persona: string, seen: AccessView): Promise<PersonaUse[]> {
    const pointers = (await this.#host.collect('personas.pointers')).flat()
    const mine = await Promise.all(
      pointers
        .filter(each => each.persona === persona)
        .map(async ({ kind, id, label, startIn, folders }) => {
          const place = { ...(startIn !== undefined && { startIn }), ...(folders && { folders }) }
          return (await accessToConversation(seen, place)) === undefined ? [] : [{ kind, id, label }]
        }),
    )
    return mine.flat()
  }
}

const labelOf = ({ id, label }: Pick<PersonaCard, 'id' | 'label'>): string => label ?? id

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

const namedInPowers = ({ powers: { connectors = [], devices = [], mcp = [] } = {} }: PersonaCard): string[] => [
  ...connectors,
  ...devices,
  ...mcp,
]

const unseen = async (repos: readonly string[], sees: (path: string) => Promise<boolean>): Promise<string[]> => {
  const found = await Promise.all(
    repos.map(async repo => ((await sees(repo)) ? [] : [`there is no repository ${repo}`])),
  )
  return found.flat()
}
