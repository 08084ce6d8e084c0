import type { NewSessionRequest, SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk'
import type { PermissionMode, Unenforced } from '../../turn/frames/frames.js'

/** The options of a program's session, as it reported them last. */
export interface SessionOptions {
  readonly modes?: SessionModeState
  readonly options: readonly SessionConfigOption[]
}

/** The options that a turn requests. */
export interface WantedOptions {
  readonly mode: PermissionMode
  /** The program's own name of this mode. */
  readonly modeName?: string
  /** Left out: the program's default. */
  readonly model?: string
  readonly effort?: string
}

/** One setting: with `option` a configuration option, otherwise the mode of the session. */
export interface OptionToSet {
  readonly what: 'mode' | 'model' | 'effort'
  readonly option?: string
  readonly value: string
}

/** The settings to apply, and the requested ones that the program does not support. */
export interface SettingPlan {
  readonly set: readonly OptionToSet[]
  readonly missing: readonly Unenforced[]
  /** The models of the program, if it lacks the requested one. */
  readonly models?: readonly string[]
}

const CATEGORIES = { model: 'model', mode: 'mode', effort: 'thought_level' } as const
/** Names that programs use for the mode in which they ask for permission. */
const ASKING = ['default', 'ask', 'manual', 'build', 'code', 'agent']
const PLAN = 'plan'

type Select = SessionConfigOption & { type: 'select' }

const optionFor = ({ options }: SessionOptions, what: OptionToSet['what']): Select | undefined =>
  options.find(
    (option): option is Select => option.type === 'select' && (option.category ?? option.id) === CATEGORIES[what],
  )

/** The values an option may have, in the order of the program. */
const valuesOf = (option: Select): string[] =>
  option.options.flatMap(each => ('options' in each ? each.options.map(({ value }) => value) : [each.value]))

/** The model of a session, if the program reports it. */
export const modelOf = (options: SessionOptions): string | undefined => optionFor(options, 'model')?.currentValue

/** The models of a program, if it reports them. */
export const modelsOf = (options: SessionOptions): string[] => {
  const option = optionFor(options, 'model')
  return option ? valuesOf(option) : []
}

/** The settings that a session needs for the options of a turn. */
export const settingPlan = (session: SessionOptions, { mode, modeName, model, effort }: WantedOptions): SettingPlan => {
  const set: OptionToSet[] = []
  const missing: Unenforced[] = []
  const modes = modesOf(session)
  const named = modeName !== undefined && modes.values.includes(modeName) ? modeName : undefined
  const wanted = named ?? (mode === PLAN ? PLAN : askingMode(modes))
  if (!named && mode === PLAN && !modes.values.includes(PLAN)) missing.push('mode')
  else if (wanted !== undefined && wanted !== modes.now) set.push({ what: 'mode', value: wanted, ...modes.option })
  const choose = (what: 'model' | 'effort', value: string | undefined): boolean => {
    if (value === undefined) return true
    const option = optionFor(session, what)
    if (!option || !valuesOf(option).includes(value)) return false
    if (option.currentValue !== value) set.push({ what, option: option.id, value })
    return true
  }
  const hasModel = choose('model', model)
  if (!hasModel) missing.push('model')
  if (!choose('effort', effort)) missing.push('effort')
  return { set, missing, ...(!hasModel && { models: modelsOf(session) }) }
}

interface Modes {
  readonly now?: string
  readonly values: readonly string[]
  readonly option?: { readonly option: string }
}

const modesOf = (session: SessionOptions): Modes => {
  const option = optionFor(session, 'mode')
  if (option) return { now: option.currentValue, values: valuesOf(option), option: { option: option.id } }
  const { modes } = session
  return modes ? { now: modes.currentModeId, values: modes.availableModes.map(({ id }) => id) } : { values: [] }
}

/** The mode in which a program asks; undefined: it stays in the one it is in. */
const askingMode = ({ now, values }: Modes): string | undefined =>
  ASKING.find(name => values.includes(name)) ?? (now === PLAN ? values.find(value => value !== PLAN) : undefined)

/**
 * The folders that a program is to load skills, commands, agents, hooks and tool servers from, as an extension of the
 * protocol that agent programs built on the Claude Agent SDK read; others ignore it.
 */
export const pluginsOf = (folders: readonly string[]): Pick<NewSessionRequest, '_meta'> =>
  folders.length === 0
    ? {}
    : { _meta: { claudeCode: { options: { plugins: folders.map(path => ({ type: 'local', path })) } } } }
