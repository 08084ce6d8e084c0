import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk'
import type { PermissionMode, TurnInput } from '../../../../plugins/agent/contract.js'
import type { Choice } from '../../../../plugins/providers/contract.js'
import { Refusal } from '../../../refusal.js'
import { oneLine } from '../../terminal/text.js'

/** The modes of a turn. */
export const EDITOR_MODES: readonly {
  readonly id: PermissionMode
  readonly name: string
  readonly description: string
}[] = [
  { id: 'default', name: 'Ask', description: 'Asks before each change and command' },
  { id: 'acceptEdits', name: 'Accept edits', description: 'Changes files without asking, asks before commands' },
  { id: 'plan', name: 'Plan', description: 'Reads, and proposes a plan before it changes anything' },
  { id: 'bypassPermissions', name: 'Work alone', description: 'Does not ask; the wall and the private copy hold' },
]

/** Shown where the conversation has a mode that the credential cannot read. */
const MODE_KEPT = { id: 'kept', name: 'As before', description: 'The mode that the conversation has' }

/** What the daemon chooses where the person has not chosen. */
const USUAL = 'default'

/** A model as the person chose it: its id names the provider too. */
export interface ChosenModel {
  readonly agent?: string
  readonly model?: string
}

/** The menus of a session. */
export interface SessionMenus {
  /** Undefined: that of the conversation, which the credential cannot read. */
  mode: PermissionMode | undefined
  /** Whether the next message says the mode; else the conversation keeps its own. */
  modeChosen: boolean
  chosen: ChosenModel
  effort: string | undefined
  /** Whether turns work in a private copy; undefined: it is decided. */
  isolated: boolean | undefined
  readonly models: readonly Choice[]
}

/** The choices that a message says. */
export type ChosenForTurn = Pick<TurnInput, 'permissionMode' | 'agent' | 'model' | 'effort'>

const idOf = ({ agent, model }: ChosenModel): string => (agent === undefined ? USUAL : `${agent}:${model ?? ''}`)

const modelsOf = ({ chosen, models }: SessionMenus) => {
  const listed = models.map(({ provider, providerLabel, model }) => ({
    id: idOf({ agent: provider, model: model.id }),
    name: model.label === providerLabel ? model.label : `${model.label} (${providerLabel})`,
    ...(model.description && { description: model.description }),
  }))
  const all = [{ id: USUAL, name: 'Default', description: 'What the sandbox chooses' }, ...listed]
  const now = idOf(chosen)
  if (all.some(({ id }) => id === now)) return all
  return [...all, { id: now, name: [chosen.model, chosen.agent].filter(Boolean).join(' of ') }]
}

const effortsOf = ({ chosen, models }: SessionMenus): readonly string[] =>
  models.find(({ provider, model }) => provider === chosen.agent && model.id === chosen.model)?.model.efforts ?? []

/** The menus in the protocol's forms: modes, models, and options that include both. */
export const menusOf = (
  menus: SessionMenus,
): {
  modes: SessionModeState
  models: { currentModelId: string; availableModels: { modelId: string; name: string; description?: string }[] }
  configOptions: SessionConfigOption[]
} => {
  const models = modelsOf(menus)
  const efforts = effortsOf(menus)
  const { chosen, effort, isolated } = menus
  const modes = menus.mode === undefined ? [MODE_KEPT, ...EDITOR_MODES] : EDITOR_MODES
  const mode = menus.mode ?? MODE_KEPT.id
  const place = { name: 'Works in', category: '_place', type: 'select' as const }
  return {
    modes: { currentModeId: mode, availableModes: [...modes] },
    models: {
      currentModelId: idOf(chosen),
      availableModels: models.map(({ id, ...about }) => ({ modelId: id, ...about })),
    },
    configOptions: [
      {
        id: 'mode',
        name: 'Mode',
        category: 'mode',
        type: 'select',
        currentValue: mode,
        options: modes.map(({ id, ...about }) => ({ value: id, ...about })),
      },
      {
        id: 'model',
        name: 'Model',
        category: 'model',
        type: 'select',
        currentValue: idOf(chosen),
        options: models.map(({ id, ...about }) => ({ value: id, ...about })),
      },
      ...(efforts.length > 0
        ? [
            {
              id: 'effort',
              name: 'Effort',
              category: 'thought_level',
              type: 'select' as const,
              currentValue: effort ?? USUAL,
              options: [
                ...(effort === undefined ? [{ value: USUAL, name: 'Default' }] : []),
                ...efforts.map(value => ({ value, name: value })),
              ],
            },
          ]
        : []),
      ...(isolated === undefined
        ? []
        : [
            {
              id: 'place',
              ...place,
              currentValue: isolated ? 'copy' : 'workspace',
              options: [
                { value: 'copy', name: 'A private copy', description: '/land brings its work into the workspace' },
                { value: 'workspace', name: 'The workspace', description: 'Changes your files at once' },
              ],
            },
          ]),
    ],
  }
}

/** What a message says of the choices in the menus. */
export const chosenFor = ({ mode, modeChosen, chosen: { agent, model }, effort }: SessionMenus): ChosenForTurn => ({
  ...(modeChosen && mode !== undefined && { permissionMode: mode }),
  ...(agent !== undefined && { agent }),
  ...(model !== undefined && { model }),
  ...(effort !== undefined && { effort }),
})

const oneOf = (menu: string, values: readonly string[], found: unknown): string =>
  typeof found === 'string' && values.includes(found)
    ? found
    : (() => {
        throw new Refusal(
          'invalid',
          `${menu}: expected one of ${values.slice(0, 20).join(', ')}, found ${oneLine(String(found).slice(0, 200))}`,
        )
      })()

/** Reads a mode that an editor chose. */
export const modeNamed = (id: unknown): PermissionMode =>
  oneOf(
    'mode',
    EDITOR_MODES.map(mode => mode.id),
    id,
  ) as PermissionMode

/** Chooses a mode for the next message. */
export const chooseMode = (menus: SessionMenus, id: unknown): void => {
  if (menus.mode === undefined && id === MODE_KEPT.id) return
  menus.mode = modeNamed(id)
  menus.modeChosen = true
}

/** Reads a model that an editor chose. */
export const modelNamed = (menus: SessionMenus, id: unknown): ChosenModel => {
  const found = oneOf(
    'model',
    modelsOf(menus).map(model => model.id),
    id,
  )
  if (found === USUAL) return {}
  const listed = menus.models.find(({ provider, model }) => idOf({ agent: provider, model: model.id }) === found)
  return listed ? { agent: listed.provider, model: listed.model.id } : menus.chosen
}

/** Reads a level of effort that an editor chose. */
export const effortNamed = (menus: SessionMenus, value: unknown): string | undefined => {
  const found = oneOf('effort', [USUAL, ...effortsOf(menus)], value)
  return found === USUAL ? undefined : found
}

/** Reads where turns are to work. */
export const placeNamed = (menus: SessionMenus, value: unknown): boolean => {
  if (menus.isolated === undefined)
    throw new Refusal('conflict', 'place: the conversation has begun, so where it works does not change')
  return oneOf('place', ['copy', 'workspace'], value) === 'copy'
}
