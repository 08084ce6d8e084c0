import type { Handlers, Host } from '../../../sdk/index.js'
import { meOf, httpRequestOf } from '../request.js'
import type { InfoCalls } from './contract.js'
import { Programs } from './programs.js'
import { Runtimes } from './runtimes.js'

/** A name, with a registry and a tag or a digest perhaps. */
const IMAGE = /^[a-z0-9][a-z0-9._:/@+-]{0,299}$/i

/** The image that names itself in the environment of what it starts. */
const imageOf = ({ SANDBOX_IMAGE = '' }: NodeJS.ProcessEnv): { readonly image?: string } =>
  IMAGE.test(SANDBOX_IMAGE) ? { image: SANDBOX_IMAGE } : {}

/** Serves facts about this daemon, and the problems that groups found in their files. */
export const infoCalls = (host: Pick<Host, 'call' | 'collect' | 'serves'>): Handlers<InfoCalls> => {
  const programs = new Programs(host)
  const runtimes = new Runtimes(host)
  return {
    'GET /info': async (_input, context) => {
      const { base } = httpRequestOf(context)
      const known = await host.call('kernel.info')
      // A token sees nothing of accounts.
      const states = context.caller.kind === 'token' ? undefined : await runtimes.known()
      return {
        ...imageOf(process.env),
        ...{ ...known, contract: '1', programs: await programs.known(), base, me: meOf(context.caller) },
        ...(states && { runtimes: states }),
      }
    },
    'GET /system/manifest-problems': async () => {
      const reports = (await host.collect('system.manifestProblems')).flat()
      return reports
        .filter(({ problems }) => problems.length > 0)
        .sort((one, other) => (one.path < other.path ? -1 : 1))
    },
  }
}
