import { refuse } from '../../../sdk/index.js'
import type { ProviderAdapter } from '../providers/adapter.js'
import type { Conversation, TurnInput } from '../contract.js'
import type { Harness, PermissionMode } from './frames/frames.js'
import type { Providers } from '../providers/providers.js'

/** The complete options of a turn. */
export interface TurnOptions {
  readonly adapter: ProviderAdapter
  readonly harness: Harness
  readonly model: string
  readonly permissionMode: PermissionMode
  readonly effort?: string
  readonly thinking?: boolean
  readonly fast?: boolean
  readonly actsAs?: string
}

type Chosen = Pick<
  TurnInput,
  'agent' | 'harness' | 'model' | 'permissionMode' | 'effort' | 'thinking' | 'fast' | 'actsAs'
>

/**
 * Completes the options of a message: those of the message, then the conversation's last, then the provider's defaults.
 * A new conversation that names only a model has the provider of this model.
 */
export const optionsOf = (
  input: Chosen,
  before: Partial<Conversation> | undefined,
  providers: Providers,
): TurnOptions => {
  const named = input.model === undefined ? undefined : providers.serving(input.model)?.id
  const adapter = providers.get(input.agent ?? before?.provider ?? named)
  const same = before?.provider === adapter.id ? before : undefined
  const harness = input.harness ?? same?.harness ?? adapter.ownHarness
  if (!adapter.harnesses.includes(harness))
    refuse(
      'unprocessable',
      `provider ${adapter.id} has no harness ${harness}: expected ${adapter.harnesses.join(' or ')}`,
    )
  // A provider without a list of models reports an unknown model in the turn.
  const has = (model: string) => adapter.models.length === 0 || adapter.models.includes(model)
  if (input.model !== undefined && !has(input.model))
    refuse(
      'unprocessable',
      `provider ${adapter.id} has no model ${JSON.stringify(input.model.slice(0, 120))}: `
        + `expected ${adapter.models.join(' or ')}`,
    )
  const isFast = adapter.abilities(harness).fast === true
  if (input.fast === true && !isFast)
    refuse('unprocessable', `fast: provider ${adapter.id} has no fast mode: leave it out, or name another provider`)
  const last = same?.model && has(same.model) ? same.model : undefined
  const kept = <K extends 'effort' | 'thinking' | 'fast' | 'actsAs'>(key: K) => input[key] ?? before?.[key]
  const [effort, thinking, fast, actsAs] = [kept('effort'), kept('thinking'), kept('fast'), kept('actsAs')]
  return {
    adapter,
    harness,
    model: input.model ?? last ?? adapter.models[0] ?? adapter.id,
    permissionMode: input.permissionMode ?? before?.permissionMode ?? 'bypassPermissions',
    ...(typeof effort === 'string' && { effort }),
    ...(typeof thinking === 'boolean' && { thinking }),
    // Inherited from a provider that has it.
    ...(typeof fast === 'boolean' && { fast: fast && isFast }),
    ...(typeof actsAs === 'string' && { actsAs }),
  }
}

/** Whether a message requests options other than those of the running turn. */
export const differs = (input: TurnInput, running: TurnInput, options: TurnOptions): boolean => {
  const asked: [unknown, unknown][] = [
    [input.agent, options.adapter.id],
    [input.harness, options.harness],
    [input.model, options.model],
    [input.permissionMode, options.permissionMode],
    [input.effort, options.effort],
    [input.thinking, options.thinking ?? false],
    [input.fast, options.fast ?? false],
    [input.actsAs, options.actsAs],
    [input.account, running.account],
    [input.runRole, running.runRole],
    [input.outsideWake, running.outsideWake],
    [input.unattended, running.unattended ?? false],
    [input.tierHold, running.tierHold ?? false],
    [input.autoLand, running.autoLand ?? false],
    [
      input.allowedTools && [...input.allowedTools].sort().join('\n'),
      running.allowedTools && [...running.allowedTools].sort().join('\n'),
    ],
  ]
  return asked.some(([wanted, now]) => wanted !== undefined && wanted !== now)
}
