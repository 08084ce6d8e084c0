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

  /** Ends those of work that a turn must not share programs with, before it begins. */
  async endOthers(conversationId: string, trust: ProcessAccess['trust']): Promise<void> {
    const why = 'because the next turn has other rights'
    await this.processes.end(conversationId, why, ({ access }) => access.trust !== trust)
    await this.diagnostics.end(conversationId, access => (JSON.parse(access) as ProcessAccess).trust !== trust)
  }

  async forget(conversationId: string): Promise<void> {
    await Promise.all([this.processes.forget(conversationId), this.diagnostics.end(conversationId)])
  }

  async close(): Promise<void> {
    await Promise.all([this.processes.close(), this.diagnostics.close()])
  }
}
