import { join } from 'node:path'
import type { Contract, Host } from '../../sdk/index.js'
import { Budget } from '../../sdk/node/access/budget.js'
import { packageFolder } from '../../sdk/node/programs/package.js'
import { ConsoleAssets } from './assets.js'
import { consoleContract, type ConsoleCalls } from './contract.js'
import { examples } from './examples.js'
import { connectOrigins, pagePolicy } from './policy.js'

export const contract: Contract<ConsoleCalls> = { ...consoleContract, examples }

/** Requests a minute from one address. */
const REQUESTS = 600

/** Serves the page that people work in, and its files. */
export const activate = async (host: Host): Promise<void> => {
  const assets = new ConsoleAssets(join(packageFolder(host.place.root), 'dist/bundle/console'))
  const budget = new Budget(REQUESTS)

  await host.serve(consoleContract, {
    'GET /': async (_, context) => {
      const { address = '', base = '' } = context.http ?? {}
      budget.spend(address)
      const { providers } = (await host.serves('GET /system/sign-in'))
        ? await host.call('GET /system/sign-in')
        : { providers: [] }
      const policy = pagePolicy(
        connectOrigins(
          base,
          providers.flatMap(({ token }) => token ?? []),
        ),
      )
      const { html, etag } = await assets.page(policy)
      return {
        'content-type': 'text/html; charset=utf-8',
        data: html,
        headers: { 'content-security-policy': policy, etag, 'cache-control': 'no-cache' },
      }
    },
    'GET /console/{file}': ({ file }, context) => {
      budget.spend(context.http?.address ?? '')
      return assets.file(file, context.http?.acceptEncoding ?? '')
    },
  })
}
