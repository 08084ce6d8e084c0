import { refuse, type Context, type Host } from '../../sdk/index.js'

/** What a run calls the daemon with: variables of its environment, until it ends. */
export interface RunCredential {
  readonly env: { readonly [name: string]: string }
  end(): Promise<void>
}

/** Makes the credential of one run, which acts as the caller; one that a group starts for somebody calls nothing. */
export const runCredential = async (host: Pick<Host, 'call' | 'log'>, context: Context): Promise<RunCredential> => {
  if (context.caller.kind === 'plugin') return { env: {}, end: async () => {} }
  const { listeners } = await host.call('kernel.listeners')
  const [listener] = listeners
  if (!listener) return refuse('unavailable', 'the daemon listens nowhere: it is stopping')
  const at = listener.host === '0.0.0.0' ? '127.0.0.1' : listener.host === '::' ? '::1' : listener.host
  const { id, token } = await host.call('kernel.run.mint', undefined, { as: context })
  return {
    env: {
      SANDBOX_DAEMON: `http://${at.includes(':') ? `[${at}]` : at}:${listener.port}`,
      SANDBOX_RUN_TOKEN: token,
    },
    end: async () => {
      await host
        .call('kernel.run.end', { id })
        .catch(error => host.log.warn('ending the credential of a run failed', { error: String(error) }))
    },
  }
}
