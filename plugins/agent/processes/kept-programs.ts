import { LanguageServers } from '../diagnostics/language-servers.js'
import { ConversationProcesses, type ProcessAccess, type KeptProgramDeps } from './conversation-processes.js'

/** The programs of conversations that outlive the call that starts them. */
export class KeptPrograms {
  readonly processes: ConversationProcesses
  readonly diagnostics = new LanguageServers()

  constructor(deps: KeptProgramDeps) {
    this.processes = new ConversationProcesses(deps)
  }

  /** Ends those of a conversation that is archived or goes back: they would write into what is restored. */
  async end(conversationId: string): Promise<void> {
    await this.processes.end(conversationId, 'when its conversation was archived or went back')
    await this.diagnostics.end(conversationId)
  }

  /**
   * Ends those of work that a turn must not share programs with: they would run what the turn writes. `why` completes
   * "was ended"; without `reach` the trust alone is compared.
   */
  async endOthers(
    conversationId: string,
    { trust, reach }: Pick<ProcessAccess, 'trust'> & Partial<ProcessAccess>,
    why = 'because the next turn has other rights',
  ): Promise<void> {
    const isOther = (access: ProcessAccess) => access.trust !== trust || (reach !== undefined && access.reach !== reach)
    await Promise.all([
      this.processes.end(conversationId, why, ({ access }) => isOther(access)),
      this.diagnostics.end(conversationId, access => isOther(JSON.parse(access) as ProcessAccess)),
    ])
  }

  async forget(conversationId: string): Promise<void> {
    await Promise.all([this.processes.forget(conversationId), this.diagnostics.end(conversationId)])
  }

  async close(): Promise<void> {
    await Promise.all([this.processes.close(), this.diagnostics.close()])
  }
}
