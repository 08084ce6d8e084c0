import type { ClientRequestHandlersByMethod } from '@agentclientprotocol/sdk'

type Handlers = ClientRequestHandlersByMethod
type Answer<M extends keyof Handlers> = (
  params: Parameters<Handlers[M]>[0]['params'],
  signal: AbortSignal,
) => ReturnType<Handlers[M]>

/** The requests that a program may make during its turn. */
export interface PeerAbilities {
  readonly readFile: Answer<'fs/read_text_file'>
  readonly writeFile: Answer<'fs/write_text_file'>
  readonly permission: Answer<'session/request_permission'>
  readonly createTerminal: Answer<'terminal/create'>
  readonly terminalOutput: Answer<'terminal/output'>
  readonly waitForTerminal: Answer<'terminal/wait_for_exit'>
  readonly killTerminal: Answer<'terminal/kill'>
  readonly releaseTerminal: Answer<'terminal/release'>
}

/** The turn that a program runs. */
export interface PeerTurn extends PeerAbilities {
  /** An update of the session, unchecked. */
  update(params: unknown): void
  /** Resolves when there is room for more frames. */
  room(): Promise<void> | undefined
  /** Called when an ability fails with a bug. */
  bug(error: unknown): void
}

/** Called while something of a program takes long, with what it has not done and how it is. */
export type WaitNews = (how: string) => void

/** Time limits for a program, in ms. */
export interface PeerPatience {
  /** After this time a turn says what it waits for. */
  readonly slowMs: number
  /** How long a program that starts or opens a session may show no sign of life. */
  readonly quietMs: number
  /** How long a program may open a session beside others; afterwards the turn goes on in a process of its own. */
  readonly sessionMs: number
  readonly silenceMs: number
  readonly cancelMs: number
}

export const PATIENCE: PeerPatience = {
  slowMs: 10_000,
  quietMs: 60_000,
  sessionMs: 60_000,
  silenceMs: 600_000,
  cancelMs: 5_000,
}
