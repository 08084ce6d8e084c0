import { Refusal, type Host } from '../../../../sdk/index.js'
import { installedAt } from '../../../../sdk/node/programs/installed-at.js'
import { splitWords } from '../../../../sdk/node/programs/split-words.js'
import type { ProviderDefinition } from '../../../providers/contract.js'
import type { TranslatorCounts } from '../../../routed/contract.js'
import type { Frame } from '../../turn/frames/frames.js'
import { settingsOf } from '../acp/known-programs.js'
import { located, type AgentProgram } from '../acp/program.js'
import type { AcpRun } from '../acp/turn.js'
import type { Abilities, ProviderAdapter, TurnIo, TurnRequest } from '../adapter.js'
import { nativeAdapter } from '../native/native-adapter.js'
import type { NativeDeps } from '../native/native-turn.js'
import { NativeOver } from '../native/over.js'
import { routedTarget, translatorAccess, type RoutedRun } from './routed-target.js'
import { translatorRelay } from './translator-relay.js'

type Link = Pick<Host, 'call' | 'serves' | 'log'>

/** What turns on routed providers need of the group. */
export interface RoutedDeps {
  readonly native: NativeDeps
  readonly vendor: AcpRun
  /** The abilities of agent programs. */
  readonly program: Abilities
  /** The account that a person chose for a conversation. */
  readonly accountOf: (conversationId: string, provider: string) => string | undefined
}

/** A provider that is reached through the translator: by the sandbox's own loop, or by an agent program. */
export const routedAdapter = async (
  host: Link,
  definition: ProviderDefinition,
  { native, vendor, program, accountOf }: RoutedDeps,
): Promise<ProviderAdapter> => {
  const { label, harness } = definition
  const provider: string = definition.id
  const { models } = await host.call('definitions.catalogue', { provider })
  const runOf = ({ conversationId, run, model }: TurnRequest): RoutedRun => {
    const account = accountOf(conversationId, provider)
    return { run, model, conversationId, ...(account !== undefined && { account }) }
  }
  const own = nativeAdapter(
    {
      ...{ id: provider, label, models: models.map(({ id }) => id) },
      target: request => routedTarget(host, definition, runOf(request)),
    },
    native,
  )
  return {
    ...own,
    harnesses: ['native', ...(harness ? ['vendor-code' as const] : [])],
    abilities: which => (which === 'vendor-code' ? program : own.abilities(which)),
    holds: async account => (await host.call('accounts.holds', { provider, account })).holds,
    run: (request, io) =>
      request.harness === 'vendor-code'
        ? programRun(host, definition, vendor, runOf(request), request, io)
        : own.run(request, io),
  }
}

/** A turn of an agent program that asks the translator; its usage is what the translator counted. */
async function* programRun(
  host: Link,
  definition: ProviderDefinition,
  vendor: AcpRun,
  asked: RoutedRun,
  request: TurnRequest,
  io: TurnIo,
): AsyncGenerator<Frame, void> {
  const protocol = definition.harness?.protocol ?? 'messages'
  let bearer: string | undefined
  const release = async (): Promise<TranslatorCounts | undefined> => {
    const ended = bearer
    bearer = undefined
    if (ended === undefined) return undefined
    return (await host.call('translator.release', { bearer: ended })).counts
  }
  try {
    const access = await translatorAccess(host, definition, { ...asked, protocol, shielded: false })
    bearer = access.bearer
    const address = await io.expose(translatorRelay(access.baseUrl), Number(new URL(access.baseUrl).port))
    const program = await programOf(definition, variablesFor(protocol, address, access))
    const provider: string = definition.id
    for await (const frame of vendor(provider, program, request, io)) {
      const counts = frame.kind === 'usage' ? await release() : undefined
      yield counts && counts.answers > 0 ? { ...frame, ...tokensOf(counts) } : frame
    }
  } catch (error) {
    if (error instanceof NativeOver && error.failure) {
      const { message, code } = error.failure
      return yield { kind: 'error', message, ...(code && { code }) }
    }
    if (error instanceof Refusal) return yield { kind: 'error', message: error.message }
    throw error
  } finally {
    await release().catch(error => host.log.warn('ending a bearer of the translator failed', { error: String(error) }))
  }
}

const tokensOf = ({ answers: _, ...tokens }: TranslatorCounts) => tokens

/** The variables with which programs find a server of a protocol, its key and its model. */
const variablesFor = (
  protocol: 'chat' | 'messages' | 'responses',
  address: string,
  { bearer, model }: { readonly bearer: string; readonly model: string },
): { [name: string]: string } =>
  protocol === 'messages'
    ? { ANTHROPIC_BASE_URL: address, ANTHROPIC_AUTH_TOKEN: bearer, ANTHROPIC_MODEL: model }
    : { OPENAI_BASE_URL: `${address}/v1`, OPENAI_API_KEY: bearer, OPENAI_MODEL: model }

const programOf = async (
  { id, label, harness }: ProviderDefinition,
  env: { [name: string]: string },
): Promise<AgentProgram> => {
  const { program: line = '', install = '' } = harness ?? {}
  const [word = line, ...args] = splitWords(line) ?? []
  const program: AgentProgram = { label, command: [word, ...args], install, home: id, once: true }
  const path = await located(program)
  return {
    ...program,
    env: { ...env, ...settingsOf(word) },
    ...(path !== undefined && { needs: await installedAt(path) }),
  }
}
